package server

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// rivalRecent is how long Rival reports a refused server: longer than the pause of systemd or a
// kubelet between early restarts.
const rivalRecent = 90 * time.Second

// claim records a refusal of this process in the socket's lock, for the Rival of the lock's server.
func claim(socket string) {
	// O_TRUNC changes the file's time even if the text is the same.
	_ = os.WriteFile(socket+lockSuffix, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
}

// rival is safe for concurrent use.
type rival struct {
	lock *os.File
	now  func() time.Time

	mu sync.Mutex
	// the file's time at the last look, and when a change was noticed
	noted, seen time.Time
}

// newRival ignores earlier claims.
func newRival(lock *os.File, now func() time.Time) *rival {
	r := &rival{lock: lock, now: now}
	if info, err := lock.Stat(); err == nil {
		r.noted = info.ModTime()
	}
	return r
}

func (r *rival) recent() error {
	info, err := r.lock.Stat()
	if err != nil {
		return nil //nolint:nilerr // the lock is closed: the server ends
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !info.ModTime().Equal(r.noted) {
		r.noted, r.seen = info.ModTime(), r.now()
	}
	if r.seen.IsZero() || r.now().Sub(r.seen) >= rivalRecent {
		return nil
	}
	pid := make([]byte, 16)
	n, _ := r.lock.ReadAt(pid, 0) // a short read is an error
	return fmt.Errorf("another weft (process %s) wanted the socket %s and was refused: run one weft on a node, or give the other --standby",
		strings.TrimSpace(string(pid[:n])), strings.TrimSuffix(r.lock.Name(), lockSuffix))
}

// Rival returns an error if another server was recently refused the socket.
func (s *Server) Rival() error { return s.rival.recent() }
