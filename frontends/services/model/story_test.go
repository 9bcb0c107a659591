package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"
)

// TestStories runs testdata/*.txtar. A story begins with the model of node n1.
//
//	model [node=NAME] [ignoreExternalIPs] [large] [ADDRESS]   begins anew
//	service NAME IPS PORTS [OPTION...] [YAML]   sets a Service; a port 80 has the name p80
//	slice NAME SERVICE ENDPOINT... [YAML]       sets a slice with the port p80, number 8080
//	node NAME ADDRESS... [YAML], cidr NAME RANGE...
//	delete KIND NAME
//	use ENDPOINTS CLUSTER [LOCAL [DRAINING]]    sets slice a of Service web and checks its lists
//	want SERVICE FIELD VALUE                    checks a field of the outcome
//	changes VALUE, dirty VALUE, stats NAME=N..., notices VALUE, triggers VALUE, logged TEXT
//	serve, ignore                               external IPs
//	candidates SERVICE VALUE, find ADDRESS PROTOCOL PORT VALUE
//
// YAML is merged into the object. An endpoint is ADDRESS[@NODE][,is=CONDITION/...][,ready=BOOL]
// [,serving=BOOL][,terminating=BOOL][,zones=ZONE/...][,nodes=NODE/...]. In texts, * means local.
func TestStories(t *testing.T) {
	command := func(f func(*story, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, _ bool, args []string) {
			s := ts.Value("story").(*story)
			s.ts = ts
			f(s, args)
		}
	}
	cmds := make(map[string]func(*testscript.TestScript, bool, []string))
	for name, f := range map[string]func(*story, []string){
		"model": (*story).model, "service": (*story).service, "slice": (*story).slice, "node": (*story).node, "cidr": (*story).cidr, "delete": (*story).delete,
		"use": (*story).use, "want": (*story).want, "candidates": (*story).candidates, "find": (*story).find,
		"changes": func(s *story, a []string) { s.equal("changes", s.changes(), a[0]) },
		"dirty": func(s *story, a []string) {
			var names []string
			for _, r := range sorted(maps.Keys(s.m.dirty)) {
				names = append(names, r.key.Name)
			}
			s.equal("dirty Services", strings.Join(names, " "), a[0])
		},
		"stats": func(s *story, a []string) {
			s.m.Refresh()
			n := s.m.Stats()
			got := fmt.Sprintf(" skipped=%d conflicts=%d revision=%d changes=%d services=%d slices=%d events=%d ", n.Skipped, n.Conflicts, n.Revision, n.ServiceChanges,
				n.Services, n.Slices, n.ServiceEvents+n.SliceEvents+n.NodeEvents+n.ServiceCIDREvents)
			for _, want := range a {
				if !strings.Contains(got, " "+want+" ") {
					s.ts.Fatalf("stats%s, want %s", got, want)
				}
			}
		},
		"notices": func(s *story, a []string) {
			s.m.Refresh()
			s.equal("notices", strings.Join(s.noticed, "; "), a[0])
			s.noticed = nil
		},
		"triggers": func(s *story, a []string) {
			var got []string
			for _, tr := range s.m.Refresh().Triggers {
				got = append(got, fmt.Sprintf("%s/%s", tr.At.Sub(epoch), tr.Family))
			}
			s.equal("triggers", strings.Join(got, " "), a[0])
		},
		"serve":  func(s *story, _ []string) { s.m.SetIgnoreExternalIPs(false) },
		"ignore": func(s *story, _ []string) { s.m.SetIgnoreExternalIPs(true) },
		"logged": func(s *story, a []string) {
			if !strings.Contains(s.log.String(), a[0]) {
				s.ts.Fatalf("no %q in the log:\n%s", a[0], &s.log)
			}
		},
	} {
		cmds[name] = command(f)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", ContinueOnError: true, Cmds: cmds, Setup: func(e *testscript.Env) error {
		s := &story{}
		s.model(nil)
		e.Values["story"] = s
		return nil
	}})
}

// epoch is the start of the process in a story.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type story struct {
	ts      *testscript.TestScript
	m       *Model
	log     bytes.Buffer
	noticed []string
}

func (s *story) equal(what, got, want string) {
	if got != want {
		s.ts.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func (s *story) model(args []string) {
	s.log.Reset()
	s.noticed = nil
	cfg := Config{NodeName: "n1", Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Started: epoch, Notify: func(n Notice) {
		s.noticed = append(s.noticed, fmt.Sprintf("%s %s %t %s", n.Service.Name, n.Reason, n.Reporter, n.Message))
	}}
	large := largeSize
	for _, a := range args {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "node":
			cfg.NodeName = value
		case "ignoreExternalIPs":
			cfg.IgnoreExternalIPs = true
		case "large":
			large = 1
		default:
			addr := netip.MustParseAddr(a)
			cfg.NodeAddresses[FamilyOf(addr)] = addr
		}
	}
	s.m = New(cfg)
	s.m.lists.largeSize = large
}

// merged merges the YAML in args into an object and returns the other arguments.
func (s *story) merged(o any, args []string) (rest []string) {
	for _, a := range args {
		if !strings.HasPrefix(a, "{") {
			rest = append(rest, a)
		} else if err := yaml.UnmarshalStrict([]byte(a), o); err != nil {
			s.ts.Fatalf("%s: %v", a, err)
		}
	}
	return rest
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func (s *story) service(args []string) {
	o := svc(args[0], "")
	if o.Spec.ClusterIPs = list(args[1]); len(o.Spec.ClusterIPs) > 0 {
		o.Spec.ClusterIP = o.Spec.ClusterIPs[0]
	}
	for _, port := range list(args[2]) {
		n, err := strconv.Atoi(port)
		s.ts.Check(err)
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "p" + port, Port: int32(n)})
	}
	for _, a := range s.merged(o, args[3:]) {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "created":
			n, err := strconv.Atoi(value)
			s.ts.Check(err)
			at(o, n)
		case "type":
			o.Spec.Type = corev1.ServiceType(value)
		case "external":
			o.Spec.ExternalIPs = strings.Split(value, ",")
		case "lb":
			o.Status.LoadBalancer.Ingress = ingress(list(value)...)
		case "ranges":
			o.Spec.LoadBalancerSourceRanges = strings.Split(value, ",")
		case "itp":
			o.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy(value))
		case "etp":
			o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(value)
		default:
			s.ts.Fatalf("unknown option %s", a)
		}
	}
	s.m.SetService(o)
}

func (s *story) slice(args []string) {
	o := eps(args[0], args[1])
	for _, a := range s.merged(o, args[2:]) {
		if when, ok := strings.CutPrefix(a, "trigger="); ok {
			triggered(o, when)
			continue
		}
		o.Endpoints = append(o.Endpoints, s.endpoint(a))
	}
	s.m.SetSlice(o)
}

func (s *story) endpoint(text string) discoveryv1.Endpoint {
	parts := strings.Split(text, ",")
	addr, nodeName, named := strings.Cut(parts[0], "@")
	e := ep(addr)
	if named {
		e.NodeName = &nodeName
	}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		all := strings.Split(value, "/")
		is := func(c string) bool { return slices.Contains(all, c) }
		switch key {
		case "is":
			conditions(is("ready"), is("serving"), is("terminating"))(&e)
		case "ready":
			e.Conditions.Ready = new(is("true"))
		case "serving":
			e.Conditions.Serving = new(is("true"))
		case "terminating":
			e.Conditions.Terminating = new(is("true"))
		case "zones":
			zones(slices.DeleteFunc(all, func(z string) bool { return z == "none" })...)(&e)
		case "nodes":
			nodes(all...)(&e)
		default:
			s.ts.Fatalf("unknown option %s", p)
		}
	}
	return e
}

func (s *story) node(args []string) {
	o := node(args[0])
	for _, a := range s.merged(o, args[1:]) {
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	s.m.SetNode(o)
}

func (s *story) cidr(args []string) { s.m.SetServiceCIDR(serviceCIDRObject(args[0], args[1:]...)) }

func (s *story) delete(args []string) {
	switch name := args[1]; args[0] {
	case "service":
		s.m.DeleteService(key(name))
	case "slice":
		s.m.DeleteSlice(key(name))
	case "node":
		s.m.DeleteNode(name)
	case "cidr":
		s.m.DeleteServiceCIDR(name)
	}
}

func (s *story) use(args []string) {
	s.slice(append([]string{"a", "web"}, strings.Fields(args[0])...))
	for i, field := range []string{"cluster", "local", "draining"}[:len(args)-1] {
		s.want([]string{"web", field, args[1+i]})
	}
}

func (s *story) want(args []string) {
	s.m.Refresh()
	var got []string
	if args[0] == "node" {
		n := s.m.Node()
		s.equal("node", fmt.Sprintf("%s %v %v zone=%s kept=%t leaving=%t", n.Name, n.Addresses, n.PodCIDRs, n.Zone, n.Kept, n.Leaving), args[1])
		return
	}
	svc := s.m.Service(key(args[0]))
	if svc == nil {
		s.equal(args[0], "", args[2])
		return
	}
	one, ports := map[string]func() any{
		"ips": func() any { return svc.ClusterIPs }, "policies": func() any { return fmt.Sprint(svc.InternalLocal, svc.ExternalLocal) },
		"ranges": func() any { return svc.SourceRanges }, "affinity": func() any { return svc.Affinity },
		"health": func() any { return fmt.Sprint(svc.HealthCheckNodePort, svc.LocalReady) },
	}[args[1]], map[string]func(p *Port) string{
		"cluster":  func(p *Port) string { return text(p.Backends[IPv4].Cluster) },
		"cluster6": func(p *Port) string { return text(p.Backends[IPv6].Cluster) },
		"local":    func(p *Port) string { return text(p.Backends[IPv4].Local) },
		"draining": func(p *Port) string { return text(p.Backends[IPv4].Draining) },
		"external": func(p *Port) string { return externalText(p.External) },
		"ports": func(p *Port) string {
			return fmt.Sprintf("%s=%d/%s@%d %v", p.Name, p.Number, p.Protocol, p.NodePort, p.ClusterIPs[IPv4])
		},
	}[args[1]]
	if one != nil {
		s.equal(args[1], fmt.Sprint(one()), args[2])
		return
	}
	for i := range svc.Ports {
		got = append(got, ports(&svc.Ports[i]))
	}
	s.equal(args[0]+" "+args[1], strings.Join(got, "; "), args[2])
}

// changes lists the changes of Refresh: +NAME is new, -NAME is gone, NAME changed.
func (s *story) changes() string {
	c := s.m.Refresh()
	var out []string
	for _, svc := range c.Services {
		sign := map[[2]bool]string{{true, false}: "+", {false, true}: "-"}[[2]bool{svc.Old == nil, svc.New == nil}]
		out = append(out, sign+svc.Name.Name)
	}
	if c.Node != nil {
		out = append(out, "node")
	}
	if c.ServiceCIDRs != nil {
		out = append(out, fmt.Sprint(*c.ServiceCIDRs))
	}
	if s.m.Dirty() {
		out = append(out, "dirty")
	}
	return strings.Join(out, " ")
}

func (s *story) candidates(args []string) {
	all, ok := s.m.Candidates(key(args[0]))
	if !ok {
		s.equal("candidates", "none", args[1])
		return
	}
	var got []string
	for _, c := range all {
		var back Candidate
		row, err := json.Marshal(&c)
		s.ts.Check(errors.Join(err, json.Unmarshal(row, &back)))
		if back != c {
			s.ts.Fatalf("%+v comes back as %+v", c, back)
		}
		in := ""
		for _, list := range []struct {
			in   bool
			name string
		}{{c.Cluster, "c"}, {c.ForLocal, "l"}, {c.Draining, "d"}} {
			if list.in {
				in += list.name
			}
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Addr, in, c.Why(false))))
	}
	s.equal("candidates", strings.Join(got, "; "), args[1])
}

func (s *story) find(args []string) {
	addr, _ := netip.ParseAddr(args[0])
	port, err := strconv.ParseUint(args[2], 10, 16)
	s.ts.Check(err)
	k, name, ok := s.m.Find(addr, map[string]Protocol{"tcp": TCP, "udp": UDP}[args[1]], uint16(port))
	s.equal("found", fmt.Sprintf("%s %s %t", k.Name, name, ok), args[3])
}
