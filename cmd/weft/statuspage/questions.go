package statuspage

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/explain"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// as in "weft explain"
const sourcePort = 40_000

func (p *Page) showExplain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := explain.Question{From: query.Get("from"), To: query.Get("to"), Protocol: query.Get("protocol"), Port: sourcePort}
	protocols := list{}
	for _, name := range []string{"", "tcp", "udp", "sctp", "icmp"} {
		option := el("option", text(map[bool]string{true: "of the Service, or tcp", false: name}[name == ""])).with("value", name)
		if name == q.Protocol {
			option.with("selected", "")
		}
		protocols = append(protocols, option)
	}
	below := list{
		el("h1", text("What happens to a packet")),
		el("form",
			field("From", "from", q.From, "shop/client, 10.244.1.5, node, outside"),
			field("To", "to", q.To, "shop/web:80, 192.0.2.1:30080"),
			el("label", text("Protocol "), el("select", protocols).with("name", "protocol")),
			el("button", text("Explain"))),
	}
	if q.From != "" || q.To != "" {
		below = append(below, p.answer(r.Context(), q))
	}
	p.write(w, "Explain", nil, el("main", below))
}

func (p *Page) answer(ctx context.Context, q explain.Question) node {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := explain.Ask(ctx, p.conn, q)
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad answer", "role", "status")
	}
	var b bytes.Buffer
	if err := explain.Print(&b, a); err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	return list{el("p", text(a.Sentence+".")).with("class", "answer", "role", "status"), el("pre", text(b.String()))}
}

func field(label, name, value, hint string) node {
	return el("label", text(label+" "), el("input").with("name", name, "value", value, "placeholder", hint))
}

func (p *Page) showServices(w http.ResponseWriter, r *http.Request) {
	word, name := r.URL.Query().Get("q"), r.URL.Query().Get("name")
	form := el("form", field("Name or namespace", "q", word, "web"), el("button", text("Find")))
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	below := list{el("h1", text("Services")), form}
	if name != "" {
		below = append(below, p.endpoints(ctx, name))
	} else {
		below = append(below, p.services(ctx, word))
	}
	p.write(w, "Services", nil, el("main", below))
}

func (p *Page) services(ctx context.Context, word string) node {
	state, err := get.ReadServices(ctx, &p.conn, model.Key{})
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	of, c := len(state.Services), state.Model.Stats
	found := slices.DeleteFunc(state.Services, func(s localstate.Service) bool { return !strings.Contains(s.Namespace+"/"+s.Name, word) })
	matched := len(found)
	found = found[:min(matched, maxRows)]
	links := cli.Map(found, func(s localstate.Service) node {
		name := s.Namespace + "/" + s.Name
		return list{el("a", text(name)).with("href", Root+"services?name="+name), text(" ")}
	})
	rows := get.Services(found)
	return list{
		el("p", text(fmt.Sprintf("%d of %d Services. Received: %d changes of Services, %d of EndpointSlices; %d changes made.",
			matched, of, c.ServiceEvents, c.SliceEvents, c.ServiceChanges))),
		table(rows), notes(rows),
		el("h2", text("Endpoints of")), el("p", links...),
	}
}

func (p *Page) endpoints(ctx context.Context, name string) node {
	key, err := get.ParseServiceName(name)
	var rows *get.Rows
	if err == nil {
		rows, err = get.Endpoints(ctx, &p.conn, key)
	}
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	return list{section("Endpoints of "+key.String(), rows), notes(rows)}
}

// notes says why rows are not in force.
func notes(rows *get.Rows) node {
	return list(cli.Map(rows.Notes, func(n string) node { return el("p", text(n)).with("class", "bad") }))
}
