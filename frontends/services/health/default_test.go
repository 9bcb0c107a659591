package health

import "testing"

// TestProxyWithoutPending: no change ever waits, so the proxy is healthy after its first
// commit.
func TestProxyWithoutPending(t *testing.T) {
	p, err := NewProxy(ProxyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p.Updated()
	if h := p.Health(); !h.Healthy || h.LastUpdated.IsZero() {
		t.Errorf("health %+v", h)
	}
}
