package statuspage

import (
	"context"
	"net/http"

	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

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
