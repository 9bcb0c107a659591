package migration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// third is a publisher of the earlier version outside of weft's pods: it adds an element to its sticky
// fragment five times a second.
type third struct {
	node *lab.Node
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan error

	mu sync.Mutex
	// the elements that weft has acknowledged
	acked []string
}

// a line of weft publish
type answer struct {
	Revision uint64 `json:"revision"`
	Error    string `json:"error"`
}

const thirdRules = "table inet third { set members { type ipv4_addr; }; chain input { type filter hook input priority 10; ip saddr @members drop; }; }"

// The configurations name the third publisher, because a DaemonSet's aggregator, in its own PID
// namespace, cannot see its capabilities. The earlier aggregator lacks some fields of the chart's.
const (
	kind             = "    kind: Configuration\n"
	thirdPublisher   = "    publishers:\n    - {name: third, match: {uid: 0}, allow: {families: [inet], hooks: [input]}}\n"
	earlierFrontends = "    - {name: services, match: {uid: 64501}, allow: {tables: [{name: weft}], nat: true}}\n    socketGroup: 64500\n"
)

// withThird adds the third publisher to the manifests' configuration.
func withThird(manifests string, aggregator version) string {
	before, rest, _ := strings.Cut(manifests, kind)
	own, after, _ := strings.Cut(rest, "---\n")
	own = strings.TrimPrefix(own, "    publishers:\n")
	if aggregator == old {
		own = earlierFrontends
	}
	return before + kind + thirdPublisher + own + "---\n" + after
}

// startThird starts a publisher on a node, with the socket of its weft. stop ends it.
func startThird(n *lab.Node, log string, enter []string, socket string) (*third, error) {
	argv := append(enter, program("weft-earlier"), "publish", "--stdin", "--publisher", "third", "--lifetime", "sticky", "--socket", socket)
	p := &third{node: n, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan error, 1)}
	f, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start publisher: %w", err)
	}
	defer f.Close()
	p.cmd.Stderr = f
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start publisher: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start publisher: %w", err)
	}
	if err := n.Do(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start publisher: %w", err)
	}
	go func() {
		err := p.run(bufio.NewScanner(out))
		_ = p.in.Close()
		p.done <- errors.Join(err, p.cmd.Wait())
	}()
	return p, nil
}

func (p *third) run(lines *bufio.Scanner) error {
	if err := p.update(lines, map[string]any{"id": 1, "snapshot": map[string]any{"name": "list", "nft": thirdRules}}); err != nil {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := 1; ; i++ {
		key := fmt.Sprintf("192.0.%d.%d", 128+i/250, 1+i%250)
		set := map[string]any{"set": "members", "add": []any{map[string]any{"key": key}}}
		err := p.update(lines, map[string]any{"id": i + 1, "patch": map[string]any{
			"fragment": "list", "tables": []any{map[string]any{"family": "inet", "name": "third", "elements": []any{set}}},
		}})
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("element %s: %w", key, err)
		}
		p.mu.Lock()
		p.acked = append(p.acked, key)
		p.mu.Unlock()
		<-tick.C
	}
}

// update waits for the answer. The error is os.ErrClosed after stop.
func (p *third) update(lines *bufio.Scanner, u map[string]any) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return err
	}
	if !lines.Scan() {
		return errors.Join(errors.New("weft publish has ended"), lines.Err())
	}
	var a answer
	if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

func (p *third) acknowledged() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked[:len(p.acked):len(p.acked)]
}

// goesOn requires two more acknowledgements, and the elements and rules of both fragments in the
// kernel.
func (p *third) goesOn(t *testing.T, ctx context.Context, durable string) {
	t.Helper()
	before := p.acknowledged()
	if err := lab.Within(ctx, time.Minute, func() error {
		select {
		case err := <-p.done:
			p.done <- err
			t.Fatalf("%s: the third publisher ended: %v", p.node.Name(), err)
		default:
		}
		if n := len(p.acknowledged()); n < len(before)+2 {
			return fmt.Errorf("%s: %d elements acknowledged, as before", p.node.Name(), n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	before = p.acknowledged()
	have, err := p.node.Run(ctx, "nft", "list", "table", "inet", "third")
	if err != nil {
		t.Fatal(err)
	}
	words := make(map[string]bool)
	for _, w := range strings.FieldsFunc(have, func(r rune) bool { return strings.ContainsRune(" ,\t\n", r) }) {
		words[w] = true
	}
	for _, key := range before {
		if !words[key] {
			t.Fatalf("%s: element %s was acknowledged and is not in the kernel:\n%s", p.node.Name(), key, have)
		}
	}
	if now := durableTable(t, ctx, p.node); now != durable {
		t.Fatalf("%s: the durable fragment changed:\n%s\nit was\n%s", p.node.Name(), now, durable)
	}
}

// stop returns the number of added elements.
func (p *third) stop() (int, error) {
	err := p.in.Close()
	return len(p.acknowledged()), errors.Join(err, <-p.done)
}

const durableRules = `table inet keep {
	set blocked { type ipv4_addr; flags interval; elements = { 198.51.100.0/24, 203.0.113.7 } }
	chain input { type filter hook input priority 5; policy accept; ip saddr @blocked drop comment "keep" }
}
`

// durableTable lists handles of rules, but not the owner.
func durableTable(t *testing.T, ctx context.Context, n *lab.Node) string {
	t.Helper()
	out, err := n.Run(ctx, "nft", "-a", "list", "table", "inet", "keep")
	if err != nil {
		t.Fatal(err)
	}
	return ownerless(out)
}

// ownerless removes the lines with the owner, which changes.
func ownerless(table string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(table, "\n"), func(line string) bool {
		return strings.Contains(line, "# handle") && strings.HasPrefix(line, "table ") || strings.HasPrefix(strings.TrimSpace(line), "flags owner") || strings.TrimSpace(line) == "flags"
	}), "\n")
}
