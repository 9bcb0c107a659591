package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/prometheus/slis"
)

const configGroup = "kubeproxy.config.k8s.io"

// pages are those of every component of Kubernetes, such as /statusz.
type pages struct {
	mux     *http.ServeMux
	paths   []string
	flags   *pflag.FlagSet
	started time.Time
	version string
}

// /configz shows the flags if configuration is nil.
func newPages(version string, flags *pflag.FlagSet, configuration any) *pages {
	p := &pages{mux: http.NewServeMux(), flags: flags, started: time.Now(), version: version}
	registry := metrics.NewKubeRegistry()
	slis.Register(registry)
	p.handle("/metrics/slis", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP)
	p.handle("/configz", p.configz(configuration))
	p.handle("/flagz", p.flagz)
	p.handle("/statusz", p.statusz)
	return p
}

func (p *pages) handle(path string, handler http.HandlerFunc) {
	p.paths = append(p.paths, path)
	p.mux.HandleFunc(path, handler)
}

func plain(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// healthz answers "ok", or 500 and a line for each check; ?verbose always prints the lines.
func (p *pages) healthz(healthy check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err, status := healthy(), slis.Success
		if err != nil {
			status = slis.Error
		}
		_ = slis.ObserveHealthcheck(r.Context(), "ping", "healthz", slis.Success) // it returns nil
		_ = slis.ObserveHealthcheck(r.Context(), "weft", "healthz", status)
		plain(w)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "[+]ping ok\n[-]weft failed: %v\nhealthz check failed\n", err)
		case r.URL.Query().Has("verbose"):
			fmt.Fprint(w, "[+]ping ok\n[+]weft ok\nhealthz check passed\n")
		default:
			fmt.Fprint(w, "ok")
		}
	}
}

func (p *pages) configz(configuration any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		all := map[string]any{configGroup: configuration}
		if configuration == nil {
			all = map[string]any{"weft": p.values()}
		}
		b, err := json.Marshal(all)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(b)
	}
}

func (p *pages) values() map[string]string {
	out := make(map[string]string)
	if p.flags != nil {
		p.flags.VisitAll(func(f *pflag.Flag) { out[f.Name] = f.Value.String() })
	}
	return out
}

func forPeople(w http.ResponseWriter, page string) {
	plain(w)
	fmt.Fprintf(w, "\nweft %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n", page)
}

func (p *pages) flagz(w http.ResponseWriter, _ *http.Request) {
	forPeople(w, "flagz")
	values := p.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "%s=%s\n", name, values[name])
	}
}

func (p *pages) statusz(w http.ResponseWriter, _ *http.Request) {
	forPeople(w, "statusz")
	up := time.Since(p.started).Round(time.Second)
	fmt.Fprintf(w, "\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\n\nPaths: %s\n",
		p.started.Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60,
		runtime.Version(), p.version, strings.Join(slices.Sorted(slices.Values(p.paths)), " "))
}
