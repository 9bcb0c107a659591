package top

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// web is a Service with a ClusterIP, an external address and a NodePort.
func web() *model.Service {
	return &model.Service{Name: model.Key{Namespace: "shop", Name: "web"}, Ports: []model.Port{{
		Protocol: model.TCP, Number: 80, NodePort: 30080,
		ClusterIPs: [model.NumFamilies]netip.Addr{netip.MustParseAddr("10.96.0.1")},
		External:   [model.NumFamilies][]model.External{{{Addr: netip.MustParseAddr("192.0.2.1")}}},
	}}}
}

// between returns two samples, 2 s apart.
func between() (before, after *sample) {
	x := newIndex([]*model.Service{web()})
	start := time.Now()
	publisher := func(name string, committed, rejected uint64) *weftv1.PublisherStatus {
		return &weftv1.PublisherStatus{Name: name, Committed: committed, Rejected: rejected, Fragments: 3, Rules: 7, Sessions: []*weftv1.SessionStatus{{Pending: 2}}}
	}
	before = &sample{at: start, countedAt: start, revision: 1790000000100, services: slices.Clone(x.ports), publishers: []*weftv1.PublisherStatus{publisher("idle", 9, 1), publisher("restarted", 9, 9), publisher("team-a", 10, 0)}}
	after = &sample{at: start.Add(2 * time.Second), countedAt: start.Add(2 * time.Second), revision: 1790000000110, fragments: 9, services: slices.Clone(x.ports),
		publishers: []*weftv1.PublisherStatus{publisher("idle", 9, 1), publisher("restarted", 3, 0), publisher("team-a", 15, 1)},
		commits: []*weftv1.Revision{{Revision: 1790000000110, Time: timestamppb.New(start), Build: durationpb.New(1500 * time.Microsecond), Kernel: durationpb.New(time.Millisecond),
			Fragments: []*weftv1.FragmentChange{{Fragment: &weftv1.FragmentName{Publisher: "team-a", Name: "web\x1b"}}}, Changes: &weftv1.Counts{RulesAdded: 2}}}}
	before.services[0].opened, after.services[0].opened = 100, 108
	return before, after
}

// TestView shows rates: 5 updates, 1 rejection and 8 new connections in 2 s.
func TestView(t *testing.T) {
	before, after := between()
	var text strings.Builder
	for _, l := range view("/run/weft.sock", before, after, 0) {
		fmt.Fprintln(&text, strings.Join(strings.Fields(l.text), " "))
	}
	for _, want := range []string{
		"revision 1790000000110, 5.0 commits/s, 3 publishers, 9 fragments, 6 updates wait\n\nPUBLISHER UPDATES/S",
		"\nteam-a 2.5 0.5 1 1 2 3 7\nidle 0.0 0.0 1 1 2 3 7\nrestarted 0.0 0.0 0 1 2 3 7\n\nSERVICE",
		"\nshop/web 80/tcp 4.0 0\n\nREVISION",
		"\n00110 " + after.commits[0].GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000") + ` team-a/web\u001b 0 0s 1.5ms 1ms +2 -0 rules` + "\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	after.noServices = "no Service frontend runs here"
	lines := view("/run/weft.sock", before, after, 0)
	if !strings.Contains(fmt.Sprint(lines), "{SERVICE true} {no Service frontend runs here false}") {
		t.Errorf("%v", lines)
	}
}

// TestIndexFindsServices finds ports by the keys of counters.
func TestIndexFindsServices(t *testing.T) {
	x := newIndex([]*model.Service{web()})
	for key, want := range map[string]bool{"10.96.0.1 . tcp . 80": true, "192.0.2.1 . tcp . 80": true, "tcp . 30080": true, "10.96.0.1 . udp . 80": false, "10.96.0.1 . tcp . 81": false, "tcp": false, "x . tcp . 80": false} {
		if _, got := x.at[key]; got != want {
			t.Errorf("that %q is a port is %v", key, got)
		}
	}
}

// TestViewFits has no more lines than the screen, and uses them.
func TestViewFits(t *testing.T) {
	before, after := between()
	for range 30 {
		after.commits = append(after.commits, after.commits[0])
		after.publishers = append(after.publishers, &weftv1.PublisherStatus{Name: "x"})
	}
	for height := 10; height < 60; height++ {
		lines := view("/run/weft.sock", before, after, height)
		if len(lines) != height {
			t.Errorf("%d lines of %d", len(lines), height)
		}
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "abc": "abc", "äbcd": "äbc"} {
		if got := cut(text, 3); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}
