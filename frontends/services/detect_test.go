package services

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

var (
	onlyIPv4     = [model.NumFamilies]bool{true, false}
	bothFamilies = [model.NumFamilies]bool{true, true}
)

// TestFamilyIsMissing: a configuration for a family that the node does not have is
// refused.
//
// Behaviour: 100.
func TestFamilyIsMissing(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	cidr := func(list ...string) render.Detect {
		var d render.Detect
		for _, s := range list {
			d.CIDRs = append(d.CIDRs, netip.MustParsePrefix(s))
		}
		return d
	}
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"the node's address": {Config{NodeAddresses: [model.NumFamilies]netip.Addr{{}, six}}, "2001:db8::1, but this node does not have IPv6"},
		"both addresses":     {Config{NodeAddresses: [model.NumFamilies]netip.Addr{four, six}}, ""},
		"pods":               {Config{Detect: cidr("fd00::/48")}, "[fd00::/48], but this node does not have"},
		"pods of both":       {Config{Detect: cidr("fd00::/48", "10.0.0.0/8")}, ""},
		"nothing":            {Config{}, ""},
	} {
		err := tt.cfg.check(onlyIPv4)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		if err := tt.cfg.check(bothFamilies); err != nil {
			t.Errorf("%s, with both families: %v", name, err)
		}
	}
}

// TestUnknownPods: who runs without a way to know flows from pods hears at the start
// what that means; so does who waits for the podCIDRs of the Node.
//
// Behaviour: 53, 90, 91, 92.
func TestUnknownPods(t *testing.T) {
	for name, tt := range map[string]struct {
		detect render.Detect
		node   *model.Node
		want   string
	}{
		"no CIDRs": {render.Detect{}, nil, "level=WARN msg=\"no addresses of pods are configured"},
		"CIDRs":    {render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, nil, ""},
		"the node": {render.Detect{Mode: render.DetectNode}, nil, "level=INFO msg=\"flows from pods are recognized by the podCIDRs"},
		"none yet": {render.Detect{Mode: render.DetectNode}, &model.Node{Known: true, Name: "n"}, "the node has no podCIDRs yet"},
		"no longer": {render.Detect{Mode: render.DetectNode}, &model.Node{Known: true, Kept: true, PodCIDRs: model.Prefixes{{netip.MustParsePrefix("10.244.1.0/24")}}},
			"the node has no podCIDRs any more: until it has, flows from pods are recognized by those that it had, [10.244.1.0/24]"},
		"an instance": {render.Detect{Mode: render.DetectInterface, Interface: "cni0"}, nil, "flows from this node itself are not flows from pods"},
		"IPv6 alone": {render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			&model.Node{Known: true, Addresses: [model.NumFamilies]netip.Addr{{}, netip.MustParseAddr("fd00::1")}}, "the node's only address is fd00::1, but it does not have IPv6"},
		"other CIDRs": {render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			&model.Node{Known: true, PodCIDRs: model.Prefixes{{netip.MustParsePrefix("172.16.1.0/24")}}}, "podCIDR 172.16.1.0/24 is not in the cluster CIDR [10.0.0.0/8]"},
		"our CIDRs": {render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			&model.Node{Known: true, PodCIDRs: model.Prefixes{{netip.MustParsePrefix("10.244.1.0/24")}, {netip.MustParsePrefix("fd00::/64")}}}, ""},
	} {
		var log bytes.Buffer
		f := Frontend{have: onlyIPv4, cfg: Config{Detect: tt.detect, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		f.cfg.warnDetect()
		f.noteNode(tt.node)
		if err := f.Node(); err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the node is %v", name, err)
		}
		if tt.want == "" && log.Len() > 0 || !strings.Contains(log.String(), tt.want) {
			t.Errorf("%s: the log is %q, want %q", name, &log, tt.want)
		}
	}
	var log bytes.Buffer
	f := Frontend{have: bothFamilies, cfg: Config{Detect: render.Detect{Mode: render.DetectNode}, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	cidrs := model.Prefixes{{netip.MustParsePrefix("10.244.1.0/24")}}
	f.noteNode(&model.Node{Known: true, PodCIDRs: cidrs})
	f.noteNode(nil)
	f.noteNode(&model.Node{})
	if log.Len() > 0 {
		t.Errorf("a node with podCIDRs is worth %q", &log)
	}
}

// TestStrangeName: the name of this node is not that of a Node or an endpoint.
func TestStrangeName(t *testing.T) {
	src := newScript(setService("a", 0, "10.96.0.1"), setSlice("a", discoveryv1.AddressTypeIPv4, "10.244.2.1"))
	frontend, _ := run(t, Config{Source: src, Socket: newFake(t).Socket})
	await(t, "the reason", func() bool {
		err := frontend.Node()
		return err != nil && strings.Contains(err.Error(), `no Node and no endpoint has the name of this node, "node-1"`)
	})
	src.deliver(setSlice("a", discoveryv1.AddressTypeIPv4, "10.244.2.1", "10.244.1.1*"))
	await(t, "an endpoint of this node", func() bool { return frontend.Node() == nil })
}
