package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

type world struct {
	lab *lab.Lab
	api *api
	// changed is the pair of the changed policy, initially denied. allowed and denied are the others.
	changed         *pair
	allowed, denied []*pair
	open            []io.Closer
}

// The intervals between packets.
const (
	changedInterval = time.Millisecond
	steadyInterval  = 4 * time.Millisecond
)

func newWorld(ctx context.Context) (*world, error) {
	l, err := lab.New(lab.Config{Nodes: 1})
	if err != nil {
		return nil, err
	}
	w := &world{lab: l}
	if err := w.build(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) build(ctx context.Context) error {
	node := w.lab.Nodes[0]
	// Each packet begins a flow; conntrack's table must not fill up.
	if err := node.Sysctl("net/netfilter/nf_conntrack_udp_timeout", "2"); err != nil {
		return err
	}
	clients, servers := map[string]*lab.Pod{}, map[int]*lab.Pod{}
	for _, name := range []string{friends, strangers} {
		client, err := node.NewPod(name)
		if err != nil {
			return err
		}
		clients[name] = client
	}
	for i, number := range numbers {
		server, err := node.NewPod(fmt.Sprintf("server-%d", i))
		if err != nil {
			return err
		}
		servers[number] = server
		conn, err := echo(server)
		if err != nil {
			return err
		}
		w.open = append(w.open, conn)
		if err := w.probe(clients, server, i == 0); err != nil {
			return err
		}
	}
	var err error
	if w.api, err = startAPI(ctx, w.lab); err != nil {
		return err
	}
	return w.api.fill(ctx, newCluster(node, servers, clients))
}

func (w *world) probe(clients map[string]*lab.Pod, server *lab.Pod, changes bool) error {
	friend, err := newPair(clients[friends], server, steadyInterval)
	if err != nil {
		return err
	}
	w.allowed = append(w.allowed, friend)
	if changes {
		w.changed, err = newPair(clients[strangers], server, changedInterval)
		return err
	}
	stranger, err := newPair(clients[strangers], server, steadyInterval)
	if err != nil {
		return err
	}
	w.denied = append(w.denied, stranger)
	return nil
}

func (w *world) close() {
	for _, p := range append(append([]*pair{w.changed}, w.allowed...), w.denied...) {
		if p != nil {
			p.close()
		}
	}
	var errs []error
	if w.api != nil {
		errs = append(errs, w.api.Process.Kill())
	}
	for _, c := range w.open {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	w.lab.Close()
}

// strayed counts lost and passed packets on unchanged pairs since a time.
func (w *world) strayed(since time.Time) (lost, passed int) {
	for _, p := range w.allowed {
		lost += p.judge(since, true).wrong
	}
	for _, p := range w.denied {
		passed += p.judge(since, false).wrong
	}
	return lost, passed
}
