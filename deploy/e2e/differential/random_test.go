package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// seedVariable names the seed of TestRandom; without it every run is the same.
const seedVariable = "WEFT_DIFFERENTIAL_SEED"

// TestRandom compares the sides on random Services, changed twice, without expectations.
//
// Behaviour: 59, 63, 64, 71, 75, 79, 84.
func TestRandom(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	w := newWorld(t)
	d := &dice{rand.New(rand.NewPCG(seed, 0))}
	w.play(t, group{name: "random", checks: func() []check {
		var checks []check
		for i := range 20 {
			checks = append(checks, d.check(fmt.Sprintf("r%d", i)))
		}
		return checks
	}})
	if t.Failed() {
		t.Logf("to repeat: %s=%d", seedVariable, seed)
	}
}

type dice struct{ *rand.Rand }

func (d *dice) one(in int) bool { return d.IntN(in) == 0 }

func (d *dice) among(all ...string) string { return all[d.IntN(len(all))] }

// check is a service of any kind, and two changes.
func (d *dice) check(name string) check {
	s := d.service()
	c := check{name: name, services: []service{s}, probes: d.probes(s)}
	for range 2 {
		next := d.service()
		c.then = append(c.then, step{
			do: func(ctx context.Context, r *run) error { return r.put(ctx, next) }, probes: d.probes(next),
		})
	}
	return c
}

func (d *dice) service() service {
	s := service{name: "web", kind: corev1.ServiceType(d.among("ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"))}
	s.external = d.IntN(2)
	if s.kind == corev1.ServiceTypeLoadBalancer {
		s.ingress = 1 + d.IntN(2)
	}
	var list, hintList []string
	for _, pod := range strings.Fields(all) {
		if !d.one(3) {
			list = append(list, pod+d.among("", "", "", "-", "~", "!"))
		}
	}
	s.endpoints = strings.Join(list, " ")
	if d.one(3) {
		kind := d.among("zone", "node", "either")
		for range list {
			hint := map[string]string{
				"zone": d.among("zone-a", "zone-a", "zone-b"), "node": d.among("node-1", "node-2"),
				"either": d.among("zone-a", "node-1", "node-2", ""),
			}[kind]
			hintList = append(hintList, hint)
		}
		s.slice = func(o *discoveryv1.EndpointSlice) { hints(hintList...)(o) }
	}
	internal, external, sticky := d.one(4), d.one(3), d.one(4)
	var limits []string
	if s.kind == corev1.ServiceTypeLoadBalancer && d.one(3) {
		limits = [][]string{
			{"192.168.200.0/24", "fd00:200::/64"}, {"10.244.0.0/16", "fd00:10:244::/48"}, {"192.168.200.11/32"},
			{"10.0.0.0/8", "10.244.1.0/24", "192.168.200.100/32", "fd00:200::64/128"}, {"0.0.0.0/0"},
		}[d.IntN(5)]
	}
	reachable := s.kind != corev1.ServiceTypeClusterIP || s.external > 0
	s.change = func(o *corev1.Service) {
		policy(internal, external && reachable)(o)
		if sticky {
			o.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		o.Spec.LoadBalancerSourceRanges = limits
	}
	return s
}

// The Service object has the affinity, which leads to one of many answers.
func (d *dice) probes(s service) []probe {
	var o corev1.Service
	s.change(&o)
	targets := []string{"cluster:80", "cluster:90"}
	if s.kind != corev1.ServiceTypeClusterIP {
		targets = append(targets, "node:80", "node:80")
	}
	if s.external > 0 {
		targets = append(targets, "external:80")
	}
	if s.ingress > 0 {
		targets = append(targets, "lb:80", "lb:90")
	}
	var probes []probe
	clients := []string{"pod", "host", "outside", "outside"}
	if o.Spec.SessionAffinity == "" {
		// With affinity, whether a pod meets itself is chance.
		clients = append(clients, "web-1")
	}
	for range 6 {
		probes = append(probes, probe{
			from: d.among(clients...), proto: d.among("tcp", "tcp", "udp"),
			to: d.among(targets...), want: whatever, sticky: o.Spec.SessionAffinity != "",
		})
	}
	return probes
}
