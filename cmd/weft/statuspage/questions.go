package statuspage

import (
	"context"
	"net/http"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/explain"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// sourcePort is that of the packet of a question, as the default of "weft explain".
const sourcePort = 40_000

// explainPage is the content of the page of "weft explain": the question, and the answer if one was asked.
type explainPage struct {
	explain.Question
	Protocols []string
	Answer    *explain.Answer
	Text      string
	Err       error
}

// showExplain shows the form, and the answer if it is filled in.
func (p *Page) showExplain(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	query := r.URL.Query()
	e := explainPage{
		Question:  explain.Question{From: query.Get("from"), To: query.Get("to"), Protocol: query.Get("protocol"), Port: sourcePort},
		Protocols: []string{"tcp", "udp", "sctp", "icmp"},
	}
	if e.From != "" || e.To != "" {
		e.Answer, e.Err = explain.Ask(ctx, p.conn, e.Question)
	}
	if e.Answer != nil {
		var b strings.Builder
		e.Err = explain.Print(&b, e.Answer)
		e.Text = b.String()
	}
	p.write(w, "explain", &e)
}

// servicesPage is the content of the page of Services: those that Word is in, or the endpoints of one.
type servicesPage struct {
	Word      string
	Found     *get.FoundServices
	Key       model.Key
	Endpoints *get.Rows
	Err       error
}

// showServices lists the Services that a word is in, or the endpoints of one.
func (p *Page) showServices(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	s := servicesPage{Word: r.URL.Query().Get("q")}
	if name := r.URL.Query().Get("name"); name == "" {
		s.Found, s.Err = get.FindServices(ctx, &p.conn, s.Word, maxRows)
	} else if s.Key, s.Err = get.ParseServiceName(name); s.Err == nil {
		s.Endpoints, s.Err = get.Endpoints(ctx, &p.conn, s.Key)
	}
	p.write(w, "services", &s)
}
