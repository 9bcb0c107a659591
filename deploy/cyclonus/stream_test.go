package cyclonus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// interval is the time between two packets of a flow of a stream.
const interval = time.Millisecond

type streamed struct {
	flow
	allowed bool
	// established is true if the packets look like later ones of a connection. An allowed flow then has
	// an answered connection; a denied one has none.
	established bool
	// sender sends the packets; allowed flows take turns.
	sender *sender
	turn   int
}

// sent is valid after the sender's end.
func (f *streamed) sent() int {
	if !f.allowed {
		return f.sender.rounds
	}
	n := len(f.sender.turns)
	return (f.sender.rounds + n - 1 - f.turn) / n
}

// A streamer sends one stream at a time.
type streamer struct {
	network   *network
	tally     *tally
	injectors map[string]*injector
	rng       *rand.Rand
	// Each stream has its own source port, and so its own connections.
	last uint16
}

func (n *network) newStreamer(ctx context.Context) (*streamer, error) {
	s := &streamer{network: n, injectors: map[string]*injector{}, rng: rand.New(rand.NewPCG(*seed, 2)), last: firstSource - 1}
	var err error
	if s.tally, err = n.newTally(ctx); err != nil {
		return nil, err
	}
	for key, a := range n.agents {
		if s.injectors[key], err = newInjector(a.pod); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *streamer) close() error {
	var errs []error
	for _, i := range s.injectors {
		errs = append(errs, i.Close())
	}
	return errors.Join(errs...)
}

// per node and round
const allowedInRound = 12

// stream sends packets on each node. Every interval it sends one packet along each denied flow and
// along the next allowedInRound allowed flows.
type stream struct {
	*streamer
	flows   []streamed
	senders []*sender
	// the machine's earlier drops
	dropped int
	cancel  context.CancelFunc
}

// sender sends for the pods of one node.
type sender struct {
	// Each round sends all of always, and one item of turns.
	always []*burst
	turns  [][]*burst
	done   chan struct{}
	// Only the sender's goroutine uses the fields below until done.
	rounds       int
	gap, running time.Duration
	err          error
}

// Half of the allowed flows first get an answer.
func (s *streamer) start(ctx context.Context, allowed, denied []flow) (*stream, error) {
	if s.last++; s.last > lastSource {
		return nil, errors.New("start stream: no source port left")
	}
	st := &stream{streamer: s, dropped: machineDrops()}
	for _, f := range allowed {
		st.flows = append(st.flows, streamed{flow: f, allowed: true, established: s.rng.IntN(2) == 0})
	}
	for _, f := range denied {
		st.flows = append(st.flows, streamed{flow: f, established: s.rng.IntN(2) == 0})
	}
	if err := st.establish(ctx); err != nil {
		return nil, err
	}
	if _, err := s.tally.since(ctx); err != nil {
		return nil, err
	}
	for _, node := range s.network.lab.Nodes {
		st.senders = append(st.senders, st.newSender(node.Name()))
	}
	ctx, st.cancel = context.WithCancel(ctx)
	for _, one := range st.senders {
		go one.send(ctx)
	}
	return st, nil
}

func (s *stream) newSender(node string) *sender {
	out := &sender{done: make(chan struct{})}
	var always []*streamed
	var turns [][]*streamed
	for i := range s.flows {
		switch f := &s.flows[i]; {
		case s.network.places[f.from].node != node:
			continue
		case !f.allowed:
			f.sender, always = out, append(always, f)
		default:
			if len(turns) == 0 || len(turns[len(turns)-1]) == allowedInRound {
				turns = append(turns, nil)
			}
			f.sender, f.turn = out, len(turns)-1
			turns[f.turn] = append(turns[f.turn], f)
		}
	}
	out.always = s.bursts(always)
	for _, flows := range turns {
		out.turns = append(out.turns, s.bursts(flows))
	}
	return out
}

// bursts groups the packets of each pod.
func (s *stream) bursts(flows []*streamed) []*burst {
	segments := map[string][]segment{}
	for _, f := range flows {
		segments[f.from] = append(segments[f.from], s.segment(f.Flow, f.established))
	}
	var all []*burst
	for _, key := range slices.Sorted(maps.Keys(segments)) {
		all = append(all, s.injectors[key].burst(segments[key]))
	}
	return all
}

func (s *streamer) segment(f policytest.Flow, established bool) segment {
	out := segment{Flow: f, source: s.last}
	if f.Protocol == corev1.ProtocolTCP {
		if out.flags = tcpSYN; established {
			out.flags = tcpACK
		}
	}
	return out
}

// establish sends a first packet and an answer. conntrack has seen the answer when it arrives.
func (s *stream) establish(ctx context.Context) error {
	var all []streamed
	for _, f := range s.flows {
		if f.allowed && f.established {
			all = append(all, f)
		}
	}
	_, repliesBefore, err := s.tally.read(ctx)
	if err != nil {
		return err
	}
	flowsBefore := s.tally.seen
	var errs []error
	for _, f := range all {
		errs = append(errs, s.injectors[f.from].burst([]segment{s.segment(f.Flow, false)}).send())
	}
	arrived := func(now map[policytest.Flow]int, _ int) bool {
		return !slices.ContainsFunc(all, func(f streamed) bool { return now[f.Flow] == flowsBefore[f.Flow] })
	}
	if err := cmp.Or(errors.Join(errs...), s.until(ctx, arrived)); err != nil {
		return fmt.Errorf("open connections: %w", err)
	}
	for _, f := range all {
		errs = append(errs, s.injectors[f.to].burst([]segment{s.segment(f.Flow, false).reply()}).send())
	}
	answered := func(_ map[policytest.Flow]int, replies int) bool { return replies >= repliesBefore+len(all) }
	if err := cmp.Or(errors.Join(errs...), s.until(ctx, answered)); err != nil {
		return fmt.Errorf("answer connections: %w", err)
	}
	return nil
}

func (s *stream) until(ctx context.Context, wanted func(flows map[policytest.Flow]int, replies int) bool) error {
	for deadline := time.Now().Add(3 * time.Minute); ; {
		flows, replies, err := s.tally.read(ctx)
		if err != nil || wanted(flows, replies) {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("packets that must pass do not arrive")
		}
		<-time.After(2 * time.Millisecond)
	}
}

// send skips rounds that are late.
func (s *sender) send(ctx context.Context) {
	defer close(s.done)
	// The thread ends with its goroutine. It gets a higher priority, if that is allowed: it needs less
	// than a core.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	begin := time.Now()
	defer func() { s.running = time.Since(begin) }()
	for last := begin; s.err == nil; s.rounds++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		s.gap, last = max(s.gap, now.Sub(last)), now
		s.err = send(s.always)
		if len(s.turns) > 0 {
			s.err = cmp.Or(s.err, send(s.turns[s.rounds%len(s.turns)]))
		}
	}
}

func send(all []*burst) error {
	for _, b := range all {
		if err := b.send(); err != nil {
			return err
		}
	}
	return nil
}

type figures struct {
	// denied and allowed count packets of flows by the required verdict; passed counts arrived denied
	// packets, lost missing allowed ones.
	denied, passed, allowed, lost int
	// deniedFlows and allowedFlows count flows; deniedTime and allowedTime are their total times with
	// packets.
	deniedFlows, allowedFlows int
	deniedTime, allowedTime   time.Duration
	// the longest time between two packets of a denied flow
	gap time.Duration
	// packets that the machine dropped from full queues
	machine int
}

func (f *figures) add(g figures) {
	f.denied, f.passed, f.allowed, f.lost = f.denied+g.denied, f.passed+g.passed, f.allowed+g.allowed, f.lost+g.lost
	f.deniedFlows, f.allowedFlows = f.deniedFlows+g.deniedFlows, f.allowedFlows+g.allowedFlows
	f.deniedTime, f.allowedTime = f.deniedTime+g.deniedTime, f.allowedTime+g.allowedTime
	f.gap, f.machine = max(f.gap, g.gap), f.machine+g.machine
}

func (f *figures) String() string {
	every := func(t time.Duration, n int) time.Duration {
		return (t / time.Duration(max(n, 1))).Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("of %d packets that must not pass %d passed (one every %s on average in each flow, at most %s apart); of %d that must pass %d were lost (one every %s); queues of the machine dropped %d",
		f.denied, f.passed, every(f.deniedTime, f.denied), f.gap.Round(10*time.Microsecond), f.allowed, f.lost, every(f.allowedTime, f.allowed), f.machine)
}

// stop waits for the last packets, and returns their figures and the wrong flows. Losses do not count
// if the machine's queues dropped as many packets.
func (s *stream) stop(ctx context.Context) (figures, []string, []flow, error) {
	s.cancel()
	for _, one := range s.senders {
		<-one.done
		if one.err != nil {
			return figures{}, nil, nil, one.err
		}
	}
	arrivals, err := s.arrivals(ctx)
	if err != nil {
		return figures{}, nil, nil, err
	}
	total := figures{machine: machineDrops() - s.dropped}
	var wrong, lost []string
	var flows []flow
	for i := range s.flows {
		f := &s.flows[i]
		kind := "first packets"
		if f.established {
			kind = "later packets"
		}
		sent, arrived := f.sent(), arrivals[f.Flow]
		if !f.allowed {
			total.deniedFlows++
			total.denied, total.passed = total.denied+sent, total.passed+arrived
			total.deniedTime, total.gap = total.deniedTime+f.sender.running, max(total.gap, f.sender.gap)
			if arrived != 0 {
				wrong = append(wrong, fmt.Sprintf("%s > %s %s: %d of %d %s pass", f.from, f.to, f.Flow, arrived, sent, kind))
				flows = append(flows, f.flow)
			}
			continue
		}
		total.allowedFlows++
		total.allowed, total.lost = total.allowed+sent, total.lost+sent-arrived
		total.allowedTime += f.sender.running
		if arrived != sent {
			lost = append(lost, fmt.Sprintf("%s > %s %s: %d of %d %s are lost", f.from, f.to, f.Flow, sent-arrived, sent, kind))
			flows = append(flows, f.flow)
		}
	}
	if total.machine > 0 && total.lost <= total.machine {
		total.lost, lost = 0, nil
	}
	return total, append(wrong, lost...), flows, nil
}

// arrivals reads the counters until all packets that must pass have arrived, or for 2 s none has:
// a busy machine can leave packets in a queue for long.
func (s *stream) arrivals(ctx context.Context) (map[policytest.Flow]int, error) {
	total := map[policytest.Flow]int{}
	missing := func(f streamed) bool { return f.allowed && total[f.Flow] < f.sent() }
	for last, more := time.Now(), true; more || slices.ContainsFunc(s.flows, missing) && time.Since(last) < 2*time.Second; {
		news, err := s.tally.since(ctx)
		if err != nil {
			return nil, err
		}
		more = false
		for f, n := range news {
			total[f] += n
			more = more || n != 0
		}
		if more {
			last = time.Now()
		}
		<-time.After(20 * time.Millisecond)
	}
	return total, nil
}

// machineDrops counts packets that full queues between two interfaces dropped.
func machineDrops() int {
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0
	}
	total := 0
	for line := range strings.Lines(string(b)) {
		var processed, dropped int
		if _, err := fmt.Sscanf(line, "%x %x", &processed, &dropped); err == nil {
			total += dropped
		}
	}
	return total
}
