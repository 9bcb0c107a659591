package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// fakePorts has ports by the key of a listener, which slots begin with, and by destination.
type fakePorts map[string]render.Port

func (f fakePorts) PortOf(_, _, key string) (render.Port, bool) {
	p, ok := f[key]
	return p, ok
}

func (f fakePorts) PortAt(to netip.AddrPort, _ model.Protocol) (render.Port, bool) {
	return f.PortOf("", "", to.String())
}

func (f fakePorts) PortAtNodePort(_ model.Family, number uint16, _ model.Protocol) (render.Port, bool) {
	return f.PortOf("", "", fmt.Sprint(number))
}

func portOf(service, name string, number uint16) render.Port {
	return render.Port{Service: model.Key{Namespace: "shop", Name: service}, Name: name, Number: number, Protocol: model.TCP}
}

// table has elements that have counted, given as key, value and packets, and named counters.
func table(elements [][3]string, counters ...[2]string) []*weftv1.GetTableResponse {
	t := &weftv1.GetTableResponse{Status: &weftv1.TableStatus{Family: "ip"}}
	s := &weftv1.MergedSet{Set: &weftv1.Set{Name: "s"}}
	for _, e := range elements {
		s.Set.Elements = append(s.Set.Elements, &weftv1.Element{Key: e[0], Value: e[1],
			State: &weftv1.ElementState{Stateful: []string{"counter packets " + e[2] + " bytes 60"}}})
	}
	t.Sets = append(t.Sets, s)
	for _, c := range counters {
		t.Objects = append(t.Objects, &weftv1.MergedObject{Object: &weftv1.Object{Kind: "counter", Name: c[0], Text: "packets " + c[1] + " bytes 1"}})
	}
	return []*weftv1.GetTableResponse{t}
}

// web and db are labels of ports.
var (
	web = labels{namespace: "shop", service: "web", name: "http", protocol: "tcp"}
	db  = labels{namespace: "shop", service: "db", name: "5432", protocol: "tcp"}
)

// TestConnectionsOnlyGrow follows elements that count, begin again, come and go: the sums are
// those of all that was counted, and none falls.
func TestConnectionsOnlyGrow(t *testing.T) {
	ports := fakePorts{"a": portOf("web", "http", 80), "b": portOf("web", "http", 80), "c": portOf("db", "", 5432)}
	c := newCounts()
	for i, step := range []struct {
		elements [][3]string
		adopted  bool
		change   func()
		want     map[labels]uint64
	}{
		// What an earlier process has counted is not counted.
		{elements: [][3]string{{"a", "", "100"}}, adopted: true, want: map[labels]uint64{web: 0}},
		{elements: [][3]string{{"a", "", "103"}, {"b", "", "4"}, {"c", "", "1"}}, want: map[labels]uint64{web: 7, db: 1}},
		{elements: [][3]string{{"a", "", "103"}, {"b", "", "4"}, {"c", "", "1"}}, want: map[labels]uint64{web: 7, db: 1}},
		// An element that has been made anew.
		{elements: [][3]string{{"a", "", "2"}, {"b", "", "5"}, {"c", "", "1"}}, want: map[labels]uint64{web: 10, db: 1}},
		// A dump that lacks elements does not end a series, and does not count them again.
		{elements: [][3]string{{"b", "", "5"}}, want: map[labels]uint64{web: 10, db: 1}},
		{elements: [][3]string{{"a", "", "2"}, {"b", "", "5"}, {"c", "", "2"}}, want: map[labels]uint64{web: 10, db: 2}},
		// Elements that have been made anew and have counted nothing since: the Service exists.
		{want: map[labels]uint64{web: 10, db: 2}},
		{want: map[labels]uint64{web: 10, db: 2}},
		{elements: [][3]string{{"a", "", "1"}}, want: map[labels]uint64{web: 11, db: 2}},
		// The address is that of another Service now.
		{elements: [][3]string{{"a", "", "1"}, {"c", "", "3"}}, change: func() { ports["c"] = portOf("web", "http", 80) }, want: map[labels]uint64{web: 14}},
		{elements: [][3]string{{"a", "", "1"}, {"c", "", "3"}}, want: map[labels]uint64{web: 14}},
	} {
		if step.change != nil {
			step.change()
		}
		c.update(table(step.elements), ports, step.adopted)
		if diff := cmp.Diff(step.want, c.ports.bounded(), cmp.AllowUnexported(labels{})); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestEndpointsMove has endpoints in slots: the series of an endpoint that is gone ends.
func TestEndpointsMove(t *testing.T) {
	ports := fakePorts{"a . 0": portOf("web", "http", 80), "a . 1": portOf("web", "http", 80)}
	c := newCounts()
	of := func(endpoint string) labels { l := web; l.endpoint = endpoint; return l }
	one, two := "10.0.0.1 . 80", "fd00::2 . 80"
	c.update(table([][3]string{{"a . 0", one, "5"}, {"a . 1", two, "7"}}), ports, false)
	want := map[labels]uint64{of("10.0.0.1:80"): 5, of("[fd00::2]:80"): 7}
	for range maxMissed {
		if diff := cmp.Diff(want, c.endpoints.bounded(), cmp.AllowUnexported(labels{})); diff != "" {
			t.Errorf("endpoints (-want +got):\n%s", diff)
		}
		// The first endpoint is gone, and the second one has its slot.
		c.update(table([][3]string{{"a . 0", two, "2"}}), ports, false)
		want[of("[fd00::2]:80")] = 9
	}
	delete(want, of("10.0.0.1:80"))
	if diff := cmp.Diff(want, c.endpoints.bounded(), cmp.AllowUnexported(labels{})); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

// TestSeriesAreBounded counts what is beyond the limit together.
func TestSeriesAreBounded(t *testing.T) {
	totals := newTotals(2)
	for i := range 5 {
		totals.add(source{key: fmt.Sprint(i)}, labels{namespace: "shop", service: fmt.Sprint(i)}, 3, false)
	}
	totals.add(source{key: "4"}, labels{namespace: "shop", service: "4"}, 5, false)
	want := map[labels]uint64{{namespace: "shop", service: "0"}: 3, {namespace: "shop", service: "1"}: 3, {service: others}: 11}
	if diff := cmp.Diff(want, totals.bounded(), cmp.AllowUnexported(labels{})); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// TestDrops adds the named counters of both families.
func TestDrops(t *testing.T) {
	c := newCounts()
	c.update(table(nil, [2]string{"dropped-source-ranges", "100"}), nil, true)
	c.update(table(nil, [2]string{"dropped-source-ranges", "104"}, [2]string{"dropped-no-endpoints", "3"}, [2]string{"other", "9"}), nil, false)
	c.update(table(nil, [2]string{"dropped-source-ranges", "1"}, [2]string{"dropped-no-endpoints", "3"}), nil, false)
	want := [render.NumDropReasons]uint64{render.SourceRanges: 5, render.NoEndpoints: 3}
	publishtest.Equal(t, "dropped", c.dropped, want)
}

// TestFlowsOfServices counts connections to Services, and no others.
func TestFlowsOfServices(t *testing.T) {
	ports := fakePorts{"10.96.0.1:80": portOf("web", "http", 80), "30080": portOf("web", "http", 80)}
	flow := func(to, reply string, state weftv1.TCPState) client.Flow {
		return client.Flow{Protocol: 6, Destination: netip.MustParseAddrPort(to), ReplySource: netip.MustParseAddrPort(reply), TCPState: state, Accounted: true, OriginalBytes: 10, ReplyBytes: 20}
	}
	const established = weftv1.TCPState_TCP_STATE_ESTABLISHED
	out := &flowCounts{ports: make(map[labels]flowCount), endpoints: make(map[labels]flowCount)}
	for _, f := range []client.Flow{
		flow("10.96.0.1:80", "10.0.0.1:8080", established),
		flow("192.0.2.1:30080", "10.0.0.2:8080", established),
		flow("10.96.0.1:80", "10.0.0.1:8080", weftv1.TCPState_TCP_STATE_TIME_WAIT),
		flow("10.96.0.1:80", "10.96.0.1:80", weftv1.TCPState_TCP_STATE_SYN_SENT),
		flow("10.0.0.1:8080", "10.0.0.1:8080", established),
		flow("10.96.0.9:80", "10.0.0.1:8080", established),
	} {
		out.add(&f, ports, true)
	}
	endpoint := func(e string) labels { l := web; l.endpoint = e; return l }
	want := &flowCounts{accounted: true, ports: map[labels]flowCount{web: {2, 20, 40}},
		endpoints: map[labels]flowCount{endpoint("10.0.0.1:8080"): {1, 10, 20}, endpoint("10.0.0.2:8080"): {1, 10, 20}}}
	if diff := cmp.Diff(want, out, cmp.AllowUnexported(flowCounts{}, flowCount{}, labels{})); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestBeside reads no more often than the schedule allows, and exports the last good read while
// another one runs or fails.
func TestBeside(t *testing.T) {
	now := time.Now()
	block := make(chan struct{})
	var failure error
	r := &beside{now: func() time.Time { return now }, schedule: schedule{every: 10 * time.Second, share: 20, patience: time.Millisecond, timeout: time.Hour}}
	r.read = func(ctx context.Context) error {
		select {
		case <-block:
			return failure
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	latest := func(after time.Duration) (begins bool, err error) {
		now = now.Add(after)
		before := r.begun
		err = r.latest(t.Context())
		return r.begun != before, err
	}
	if begins, err := latest(0); !begins || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begins is %v, %v: want the wait to end before the first read does", begins, err)
	}
	if begins, err := latest(time.Hour); begins || err == nil {
		t.Errorf("begins is %v, %v: want no second read beside the first", begins, err)
	}
	now = r.begun
	close(block)
	<-r.done
	r.took = time.Second
	for _, step := range []struct {
		after  time.Duration
		begins bool
	}{{0, false}, {19 * time.Second, false}, {time.Second, true}} {
		begins, err := latest(step.after)
		<-r.done
		if err != nil || begins != step.begins {
			t.Errorf("after %v begins is %v, %v", step.after, begins, err)
		}
	}
	failure = errors.New("no aggregator")
	if begins, err := latest(30 * time.Second); err != nil || !begins {
		t.Errorf("begins is %v, %v: want what was read before", begins, err)
	}
	<-r.done
	if _, err := latest(maxAge + time.Second); !errors.Is(err, failure) {
		t.Errorf("%v: want the failure when nothing is new enough", err)
	}
	<-r.done
	block = make(chan struct{})
	if begins, _ := latest(time.Hour); !begins {
		t.Error("no read begins")
	}
	r.end()
	if r.running() {
		t.Error("a read runs after the end")
	}
}
