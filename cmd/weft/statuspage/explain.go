package statuspage

import (
	"bytes"
	"context"
	"net/http"

	"github.com/weft-proxy/weft/cmd/weft/explain"
)

// sourcePort is that of the packet of a question, as the default of "weft explain".
const sourcePort = 40_000

// showExplain shows the form, and the answer if it is filled in.
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

// answer returns the answer of "weft explain".
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
