package statuspage

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// field is an input of a form with its label.
func field(label, name, value, hint string) node {
	return el("label", text(label+" "), el("input").with("name", name, "value", value, "placeholder", hint))
}

// showServices lists the Services that a word is in, and the endpoints of one.
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

// services lists Services.
func (p *Page) services(ctx context.Context, word string) node {
	snapshot, c, err := get.ReadServices(ctx, &p.conn, model.Key{})
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	var matched []*model.Service
	for _, s := range snapshot.Services {
		if strings.Contains(s.Name.String(), word) {
			matched = append(matched, s)
		}
	}
	links := list{}
	for _, s := range matched[:min(len(matched), maxRows)] {
		links = append(links, el("a", text(s.Name.String())).with("href", Root+"services?name="+s.Name.String()), text(" "))
	}
	return list{
		el("p", text(fmt.Sprintf("%d of %d Services. Received: %d changes of Services, %d of EndpointSlices; %d changes made.",
			len(matched), len(snapshot.Services), c.GetServiceEvents(), c.GetSliceEvents(), c.GetServiceChanges()))),
		table(get.Services(matched[:min(len(matched), maxRows)])),
		el("h2", text("Endpoints of")), el("p", links),
	}
}

// endpoints lists the endpoints of a Service.
func (p *Page) endpoints(ctx context.Context, name string) node {
	key, err := get.ParseServiceName(name)
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	rows, err := get.Endpoints(ctx, &p.conn, key)
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	return section("Endpoints of "+key.String(), rows)
}
