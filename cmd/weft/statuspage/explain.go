package statuspage

import (
	"context"
	"net/http"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/explain"
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
