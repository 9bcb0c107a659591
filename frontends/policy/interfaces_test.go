package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestUnknownInterfaces names the pods with policies whose interface is not known for long, at most five of them.
// Pods without policies, and those in the network of the host, do not count.
func TestUnknownInterfaces(t *testing.T) {
	var passed atomic.Int64
	l, _ := startOn(t, publishtest.New(t), t.TempDir(), func(_ *lab, cfg *Config) {
		cfg.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	})
	l.write(t, "policy.yaml", shop)
	l.write(t, "pod.yaml", dbPod)
	l.write(t, "host.yaml", strings.Replace(podLike("host", "10.244.1.8"), "spec: {", "spec: {hostNetwork: true, ", 1))
	l.write(t, "free.yaml", strings.ReplaceAll(podLike("free", "10.244.1.9"), "app: db", "app: other"))
	await(t, "isolation", func() bool { return l.has("ingress", "10.244.1.5") })
	if err := l.Interfaces(); err != nil {
		t.Errorf("within the grace: %v", err)
	}
	passed.Store(int64(interfaceGrace + time.Second))
	if err := l.Interfaces(); !says(err, "not known: shop/db: policies hold") {
		t.Errorf("after the grace: %v", err)
	}
	l.setLinks(map[netip.Addr]model.Link{netip.MustParseAddr("10.244.1.5"): {Name: "veth0"}})
	await(t, "the interface", func() bool { return l.Interfaces() == nil })

	for i := range maxInterfaces + 2 {
		address := fmt.Sprint("10.244.1.1", i)
		l.write(t, fmt.Sprintf("pod%d.yaml", i), podLike(fmt.Sprint("db", i), address))
		await(t, "isolation of "+address, func() bool { return l.has("ingress", address) })
	}
	passed.Add(int64(interfaceGrace + time.Second))
	if err := l.Interfaces(); !says(err, "not known: shop/db0, shop/db1, shop/db2, shop/db3, shop/db4, 2 more: ") {
		t.Errorf("with many pods: %v", err)
	}
	for i := range maxInterfaces + 2 {
		l.write(t, fmt.Sprintf("pod%d.yaml", i), "")
	}
	await(t, "the end of the pods", func() bool { return l.Interfaces() == nil })
}
