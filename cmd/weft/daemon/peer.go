package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weft-proxy/weft/frontends/publish"
)

// kube-proxy's last write of rules, in seconds since 1970, with the label ip_family since
// kube-proxy 1.36.
const (
	peerSynced = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
	peerFamily = "ip_family"
)

const (
	peerPatience = 2 * time.Second
	// The answer has some 100 KB.
	peerBytes = 16 << 20
	// kube-proxy writes the second family a moment later.
	familyPatience = 30 * time.Second
)

type peerProbe struct {
	url      string
	client   *http.Client
	families []string
	now      func() time.Time
	// when kube-proxy first had rules of a family, or zero
	first time.Time
}

func newPeerProbe(address string) *peerProbe {
	p := &peerProbe{
		url: "http://" + dialable(address) + "/metrics", now: time.Now,
		client: &http.Client{Timeout: peerPatience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	for f, have := range publish.Families("/proc") {
		if have {
			p.families = append(p.families, []string{"IPv4", "IPv6"}[f])
		}
	}
	return p
}

func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.Unmap() == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

func (p *peerProbe) check(ctx context.Context) error {
	synced, err := p.read(ctx)
	if err != nil {
		p.first = time.Time{}
		return err
	}
	var missing []string
	for _, f := range p.families {
		if !synced[f] && !synced[""] {
			missing = append(missing, f)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) == len(p.families):
		p.first = time.Time{}
		return errors.New("kube-proxy runs, but has not written its rules yet")
	case p.first.IsZero():
		p.first = p.now()
	case p.now().Sub(p.first) > familyPatience:
		return nil
	}
	return fmt.Errorf("kube-proxy has not written its rules of %s yet", strings.Join(missing, " and "))
}

// read reports which families have written rules: "IPv4", "IPv6", or "" if kube-proxy does not
// distinguish them.
func (p *peerProbe) read(ctx context.Context) (map[string]bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("kube-proxy does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("kube-proxy does not answer: get %s: %s", p.url, answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(answer.Body, peerBytes))
	if err != nil {
		return nil, fmt.Errorf("the metrics of kube-proxy cannot be read: get %s: %w", p.url, err)
	}
	synced := make(map[string]bool)
	if written := families[peerSynced]; written != nil {
		samples, _ := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, written)
		for _, s := range samples {
			synced[string(s.Metric[peerFamily])] = s.Value > 0
		}
	}
	return synced, nil
}
