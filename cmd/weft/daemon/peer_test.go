package daemon

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestPeerProbe reads from kube-proxy's metrics whether its rules are in force: those of each family that
// the node has, or, of a kube-proxy that does not tell them apart, those of any.
func TestPeerProbe(t *testing.T) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if body == "" {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	const head = "# TYPE " + peerSynced + " gauge\n"
	v4, v6 := peerSynced+`{ip_family="IPv4"} 1.7e+09`+"\n", peerSynced+`{ip_family="IPv6"} 1.7e+09`+"\n"
	now := time.Now()
	for _, test := range []struct {
		name, body string
		families   []string
		after      time.Duration
		want       string
	}{
		{"another status", "", []string{"IPv4"}, 0, "kube-proxy does not answer: get " + server.URL + "/metrics: 503"},
		{"no metrics", "<html>", []string{"IPv4"}, 0, "the metrics of kube-proxy cannot be read"},
		{"starting", "# TYPE up gauge\nup 1\n", []string{"IPv4"}, 0, "has not written its rules yet"},
		{"older, starting", head + peerSynced + " 0\n", []string{"IPv4"}, 0, "has not written its rules yet"},
		{"older", head + peerSynced + " 1.7e+09\n", []string{"IPv4", "IPv6"}, 0, ""},
		{"both", head + v4 + v6, []string{"IPv4", "IPv6"}, 0, ""},
		{"its only one", head + v6, []string{"IPv6"}, 0, ""},
		{"another one", head + v4, []string{"IPv6"}, 0, "kube-proxy runs, but has not written its rules yet"},
		{"the first", head + v4, []string{"IPv4", "IPv6"}, 0, "has not written its rules of IPv6 yet"},
		{"the first, still", head + v4, []string{"IPv4", "IPv6"}, familyPatience, "has not written its rules of IPv6 yet"},
		{"the first alone", head + v4, []string{"IPv4", "IPv6"}, familyPatience + time.Second, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			body = test.body
			p := newPeerProbe(strings.TrimPrefix(server.URL, "http://"))
			p.families, p.now = test.families, func() time.Time { return now }
			if test.after > 0 {
				_ = p.check(t.Context())
				p.now = func() time.Time { return now.Add(test.after) }
			}
			err := p.check(t.Context())
			if got := errors.Join(err); test.want == "" && got != nil || test.want != "" && (got == nil || !strings.Contains(got.Error(), test.want)) {
				t.Errorf("got %v, want %q", got, test.want)
			}
		})
	}
	server.Close()
	if err := newPeerProbe(strings.TrimPrefix(server.URL, "http://")).check(t.Context()); err == nil || !strings.Contains(err.Error(), "kube-proxy does not answer") {
		t.Errorf("without kube-proxy: got %v", err)
	}
}

// TestDialable gives the address at which a server that listens on all addresses is reached.
func TestDialable(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:10249": "127.0.0.1:10249", "0.0.0.0:10249": "127.0.0.1:10249", "[::]:10249": "[::1]:10249", ":10249": "127.0.0.1:10249",
		"[fd00::1]:10249": "[fd00::1]:10249", "[::ffff:0.0.0.0]:10249": "127.0.0.1:10249", "wrong": "wrong",
	} {
		if got := dialable(listen); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
}
