package desired_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// bans is a set whose elements may have timeouts.
func bans(elems ...nftset.Element) desired.Set {
	return withFlags(addrSet("bans", elems...), nftset.FlagTimeout)
}

func ban(key string, timeout time.Duration) nftset.Element {
	e := member(key)
	e.Timeout = timeout
	return e
}

// at moves the clocks of the state and the kernel, and commits what expires.
func (h *harness) at(now time.Duration) {
	h.t.Helper()
	h.k.advance(now)
	if _, successor := h.Expire(now); successor {
		p := planner.Make(h.State)
		h.k.execute(h.t, p)
		planner.Accept(h.State)
	}
}

// What has expired costs nothing: it is not counted, not listed, and not remembered.
func TestExpiredElementIsForgotten(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft, bans(ban("10.0.0.1", time.Minute), ban("10.0.0.2", time.Hour)))))
	for i := range 5000 {
		h.at(time.Duration(i) * time.Second)
		h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "bans", Add: []nftset.Element{ban(fmt.Sprintf("10.1.%d.%d", i/250, i%250), time.Second)}})))
	}
	h.at(2 * time.Hour)
	o := h.Tables[ipWeft].Set("bans")
	if u := h.Usage(policy.Publisher); u.Elements != 0 || o.Size() != 0 || len(o.Shares[0].Due) != 0 || len(h.Expiries.Queue) != 0 {
		t.Errorf("usage %+v, %d in force, %d deadlines, %d queued", u, o.Size(), len(o.Shares[0].Due), len(h.Expiries.Queue))
	}
	// Restating does not make the queue longer.
	for range 10 * merge.FewExpiries {
		h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "bans", Add: []nftset.Element{ban("10.0.0.1", time.Hour)}})))
		h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "bans", Remove: []nftset.Element{member("10.0.0.1")}})))
	}
	if n := len(h.Expiries.Queue); n > 2*merge.FewExpiries {
		t.Errorf("%d entries are queued of one element", n)
	}
}

// timeModel has when each fragment's statement of a key expires; 0 means never.
type timeModel struct {
	now    time.Duration
	stated map[desired.Key]map[string]modelBan
}

type modelBan struct {
	timeout, at time.Duration
}

// inForce returns the kernel's elements as text, with the time that is left.
func (m *timeModel) inForce() string {
	merged := map[string]modelBan{}
	for _, key := range slices.SortedFunc(maps.Keys(m.stated), func(a, b desired.Key) int { return -a.Compare(b) }) {
		maps.Copy(merged, m.stated[key])
	}
	var lines []string
	for id, b := range merged {
		left := time.Duration(0)
		if b.timeout != 0 {
			left = (b.at - m.now).Round(time.Second)
		}
		lines = append(lines, fmt.Sprintf("%s timeout %v left %v", id, b.timeout, left))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// expire forgets what expired.
func (m *timeModel) expire(now time.Duration) {
	m.now = now
	for _, stated := range m.stated {
		maps.DeleteFunc(stated, func(_ string, b modelBan) bool { return b.timeout != 0 && b.at <= now })
	}
}

func kernelBans(k *fakeKernel) string {
	var lines []string
	if t := k.tables[ipWeft]; t != nil && t.sets["bans"] != nil {
		s := t.sets["bans"]
		for id, e := range s.elements {
			left := time.Duration(0)
			if at, ok := s.deadlines[id]; ok {
				left = (at - k.now).Round(time.Second)
			}
			lines = append(lines, fmt.Sprintf("%s timeout %v left %v", id, e.Timeout, left))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Two publishers state, remove and restate elements while time passes, updates are refused, the kernel is
// damaged and weft restarts. The kernel has what the model has, with the same time left.
func TestLifetimesModel(t *testing.T) {
	keys := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t)
		h.at(merge.ExpiryMargin)
		m := &timeModel{stated: map[desired.Key]map[string]modelBan{}}
		away := map[desired.Key]bool{}
		draw := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, name) }
		element := func() nftset.Element {
			return ban(keys[draw("key", len(keys))], []time.Duration{0, time.Minute, time.Hour}[draw("timeout", 3)])
		}
		state := func(of desired.Key, e nftset.Element) {
			m.stated[of][addr(keys[slices.IndexFunc(keys, func(k string) bool { return addr(k) == e.Key })])] = modelBan{timeout: e.Timeout, at: m.now + cmp.Or(e.Timeout, 1)}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			of := []desired.Key{policy, services}[draw("publisher", 2)]
			switch draw("step", 7) {
			case 0:
				elems := []nftset.Element{element()}
				h.commit(snapshot(of, 0, in(ipWeft, bans(elems...))))
				m.stated[of], away[of] = map[string]modelBan{}, false
				for _, e := range elems {
					state(of, e)
				}
			case 1, 2:
				if m.stated[of] == nil || away[of] {
					continue
				}
				gone, e := element(), element()
				h.commit(patch(of, in(ipWeft, desired.Elements{Set: "bans", Remove: []nftset.Element{gone}, Add: []nftset.Element{e}})))
				delete(m.stated[of], gone.Key)
				state(of, e)
			case 3:
				// The odd time: for ExpiryMargin after the end of an element the kernel and weft differ.
				const odd = 37 * time.Millisecond
				m.expire(m.now + []time.Duration{time.Second, 31 * time.Second, 20 * time.Minute}[draw("passes", 3)] + odd)
				h.at(m.now + merge.ExpiryMargin)
			case 4:
				// An update that is refused changes no time.
				if m.stated[of] != nil && !away[of] {
					h.apply(patch(of, in(ipWeft, desired.Elements{Set: "bans", Add: []nftset.Element{element()}})))
					planner.Make(h.State)
					h.Rollback()
				}
			case 5:
				// Another program deletes, renews or adds elements.
				if s := h.k.tables[ipWeft]; s != nil && s.sets["bans"] != nil {
					b, id := s.sets["bans"], addr(keys[draw("damaged", len(keys))])
					if _, ok := b.deadlines[id]; ok && draw("how", 2) == 0 {
						b.deadlines[id] = h.k.now + time.Second/2 + 30*time.Second
					} else {
						delete(b.elements, id)
						delete(b.deadlines, id)
					}
					h.repair()
				}
			case 6:
				// weft restarts; of elements that several state the kernel knows one.
				if len(m.stated) == 1 {
					h.restart(views.Record(h.State))
					for key, stated := range m.stated {
						if away[key] = draw("returns", 2) == 0; away[key] {
							continue
						}
						var elems []nftset.Element
						for id, b := range stated {
							e := nftset.Element{Key: id, Timeout: b.timeout}
							elems = append(elems, e)
							state(key, e)
						}
						h.commit(snapshot(key, 0, in(ipWeft, bans(elems...))))
					}
				}
			}
			if got, want := kernelBans(h.k), m.inForce(); got != want {
				rt.Fatalf("kernel:\n%q\nwant:\n%q", got, want)
			}
		}
	})
}
