package statuspage

import (
	_ "embed" // style.css and live.js
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/aggregator/turns"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// Root is the pages' path.
const Root = "/status/"

const (
	maxAge = time.Second
	// the time for a page's data
	patience = 5 * time.Second
)

var (
	//go:embed style.css
	style string
	//go:embed live.js
	script string
)

// Config configures a Page.
type Config struct {
	// the aggregator's socket
	Socket  string
	Version string
}

// Page serves the pages.
type Page struct {
	cfg  Config
	conn cli.Connection
	mux  *http.ServeMux
	// turns by user, named by asker
	turns *turns.Turns
	asker func(*http.Request) string

	mu   sync.Mutex
	last *overview
}

// New returns a Page.
func New(cfg Config) *Page {
	p := &Page{
		cfg: cfg, conn: cli.Connection{Socket: cfg.Socket}, mux: http.NewServeMux(),
		turns: turns.New("asks"), asker: asker,
	}
	p.mux.HandleFunc(Root+"{$}", p.showOverview)
	p.mux.HandleFunc(Root+"services", p.question(p.showServices))
	p.mux.HandleFunc(Root+"explain", p.question(p.showExplain))
	p.mux.HandleFunc(Root+"style.css", file("text/css; charset=utf-8", style))
	p.mux.HandleFunc(Root+"live.js", file("text/javascript; charset=utf-8", script))
	return p
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the status page can only be read", http.StatusMethodNotAllowed)
	case !fromLoopback(r):
		http.Error(w, "the status page is served on loopback only: use kubectl port-forward, or ssh -L", http.StatusForbidden)
	case !namesAddress(r.Host):
		http.Error(w, "the status page is served for IP addresses and localhost only, not for "+fmt.Sprintf("%.80q", r.Host), http.StatusForbidden)
	default:
		p.mux.ServeHTTP(w, r)
	}
}

func fromLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// namesAddress rejects other names: an attacker could make them resolve to loopback.
func namesAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

func file(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(content))
	}
}

// write replaces live while the page is open (live.js), and not below, which follows it.
func (p *Page) write(w http.ResponseWriter, title string, live, below node) {
	links := list{}
	for _, l := range [][2]string{{Root, "Status"}, {Root + "services", "Services"}, {Root + "explain", "Explain"}, {"/metrics", "Metrics"}} {
		links = append(links, el("a", text(l[1])).with("href", l[0]), text(" "))
	}
	body := list{el("nav", links)}
	head := list{
		el("meta").with("charset", "utf-8"), el("meta").with("name", "viewport", "content", "width=device-width, initial-scale=1"),
		el("title", text(title+" - weft")), el("link").with("rel", "stylesheet", "href", Root+"style.css"),
	}
	if live != nil {
		head = append(head, el("script").with("src", Root+"live.js", "defer", ""))
		body = append(body,
			el("p", text("weft does not answer: this is what it said last.")).with("id", "stale", "class", "bad", "role", "status"),
			el("noscript", el("p", text("Without scripts this page does not update itself: reload it."))),
			el("main", live).with("id", "live"))
	}
	if below != nil {
		body = append(body, below)
	}
	body = append(body, el("footer", text("weft "+p.cfg.Version)))
	var b strings.Builder
	b.WriteString("<!doctype html>\n")
	el("html", el("head", head), el("body", body)).with("lang", "en").write(&b)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// An error means that the reader has gone.
	_, _ = w.Write([]byte(b.String()))
}
