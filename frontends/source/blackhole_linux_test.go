package source

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestKubeBlackHole loses every packet to and from the API server for a while,
// with no connection closed and none refused: soon after they pass again events
// flow.
func TestKubeBlackHole(t *testing.T) {
	t.Parallel()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	for _, away := range []time.Duration{2 * time.Second, 14 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			t.Parallel()
			ns := nfttest.New(t)
			api := apitest.NewOn(t, func(network, address string) (l net.Listener, err error) {
				err = ns.Do(func() error { l, err = net.Listen(network, address); return err })
				return l, err
			})
			direct := newDial()
			// The transport may connect once more after the client has ended, and so has the namespace.
			var dialing sync.RWMutex
			ended := false
			t.Cleanup(func() {
				dialing.Lock()
				defer dialing.Unlock()
				ended = true
			})
			inside := func(ctx context.Context, network, address string) (c net.Conn, err error) {
				dialing.RLock()
				defer dialing.RUnlock()
				if ended {
					return nil, net.ErrClosed
				}
				err = ns.Do(func() error { c, err = direct(ctx, network, address); return err })
				return c, err
			}
			want := fill(api, 3)
			k, err := NewKube(KubeConfig{Server: api.URL(), QPS: -1, Dial: inside})
			must(t, err)
			r := follow(t, k)
			r.await(t, want...)
			_, port, _ := net.SplitHostPort(api.Address())
			ns.Nft(t, fmt.Sprintf("table inet hole { chain c { type filter hook input priority 0; tcp dport %s drop; tcp sport %s drop; }; }", port, port))
			api.Set(kubeService("s0", "10.96.2.0"))
			<-time.After(away)
			r.mu.Lock()
			if r.objects["Service default/s0"] == "10.96.2.0" {
				t.Error("the hole leaks")
			}
			r.mu.Unlock()
			ns.Nft(t, "delete table inet hole")
			back := time.Now()
			r.until(t, "the change", func() bool { return r.objects["Service default/s0"] == "10.96.2.0" })
			took := time.Since(back)
			if took > time.Minute {
				t.Errorf("the first event came %v after the network was back", took)
			}
			t.Logf("away for %v: first event %v after the network was back", away, took.Round(time.Millisecond))
			r.lostNothing(t, 0)
		})
	}
}
