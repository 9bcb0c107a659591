package server

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// rivalRecent is for how long Rival reports a server that was refused: longer than the pause
// of systemd or of a kubelet that has just begun to start it again and again.
const rivalRecent = 90 * time.Second

// claim notes in the lock of a socket that this process was refused, for the Rival of the
// server that has it. Without the note only this process reports that there are two.
func claim(socket string) {
	// O_TRUNC changes the time of the file also if the text is the same.
	_ = os.WriteFile(socket+lockSuffix, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
}

// rival watches for the notes of claim. It is safe for concurrent use.
type rival struct {
	lock *os.File
	now  func() time.Time

	mu sync.Mutex
	// noted is the time of the file when it was looked at last, seen when that was new.
	noted, seen time.Time
}

// newRival returns the watch of a lock that is held. What was noted before does not count.
func newRival(lock *os.File, now func() time.Time) *rival {
	r := &rival{lock: lock, now: now}
	if info, err := lock.Stat(); err == nil {
		r.noted = info.ModTime()
	}
	return r
}

// recent returns an error if a note was made less than rivalRecent ago.
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
	n, _ := r.lock.ReadAt(pid, 0) // it has less, which is an error
	return fmt.Errorf("another weft (process %s) wanted the socket %s and was refused: run one weft on a node, or give the other --standby",
		strings.TrimSpace(string(pid[:n])), strings.TrimSuffix(r.lock.Name(), lockSuffix))
}

// Rival returns an error if another server wanted the socket a short time ago, and was refused.
func (s *Server) Rival() error { return s.rival.recent() }
