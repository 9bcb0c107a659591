package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// streams are the open ones: they outlive the configuration that they were
// opened under.
type streams struct {
	access *access.Control

	mu   sync.Mutex
	open map[*openStream]struct{}
	// publish counts the Publish streams of each publisher.
	publish map[string]int
}

// openStream is a stream whose caller may lose its publisher.
type openStream struct {
	caller caller
	method string
	// lost gets the one error that ends the stream; it has room for it.
	lost chan error
}

func newStreams(c *access.Control) *streams {
	return &streams{access: c, open: make(map[*openStream]struct{}), publish: make(map[string]int)}
}

// add enters a stream.
//
// Possible errors: a *access.Refusal.
func (s *streams) add(c caller, method string) (*openStream, error) {
	o := &openStream{caller: c, method: method, lost: make(chan error, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == weftv1.Publisher_Publish_FullMethodName {
		if pub := s.access.Publisher(c.publisher); pub != nil {
			if r := pub.Streams(s.publish[c.publisher] + 1); r != nil {
				return nil, r
			}
		}
		s.publish[c.publisher]++
	}
	s.open[o] = struct{}{}
	// The configuration may have changed since the caller was let in.
	s.check(o)
	return o, nil
}

func (s *streams) remove(o *openStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, o)
	if o.method != weftv1.Publisher_Publish_FullMethodName {
		return
	}
	if s.publish[o.caller.publisher]--; s.publish[o.caller.publisher] == 0 {
		delete(s.publish, o.caller.publisher)
	}
}

// review ends the streams whose callers may no longer act as their publishers.
func (s *streams) review() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.open {
		s.check(o)
	}
}

// check ends a stream whose caller has lost its publisher. The lock is held.
func (s *streams) check(o *openStream) {
	if _, err := s.access.Resolve(&o.caller.process, o.caller.publisher); err != nil {
		select {
		case o.lost <- err:
		default:
		}
	}
}

// reloaded follows a change of the configuration.
func (s *Server) reloaded() {
	if err := s.giveSocket(); err != nil {
		s.cfg.Logger.Error("the socket's group stays as it was", "error", err)
	}
	s.streams.review()
}

// giveSocket gives the socket to the group that is configured; without one it
// goes back to the daemon's own, where it was another's before.
func (s *Server) giveSocket() error {
	gid := os.Getegid()
	if g := s.cfg.Access.Policy().SocketGroup; g != nil {
		gid = int(*g)
		s.given = true
	} else if !s.given {
		return nil
	}
	dir := filepath.Dir(s.cfg.Socket)
	if err := chgrp(s.cfg.Socket, gid); err != nil {
		return fmt.Errorf("give socket %s to group %d: %w", s.cfg.Socket, gid, err)
	}
	if ownDirectory(s.cfg.Socket) {
		if err := chgrp(dir, gid); err != nil {
			return fmt.Errorf("give the socket's directory %s to group %d: %w", dir, gid, err)
		}
	}
	if st, err := os.Stat(dir); err == nil && !enters(st, gid) {
		s.cfg.Logger.Warn("the socket's group cannot enter its directory: change the directory's group or mode",
			"directory", dir, "group", gid, "mode", st.Mode().Perm().String())
	}
	return nil
}

// chgrp gives a file to a group, unless it is that group's.
func chgrp(path string, gid int) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Gid) == gid {
		return nil
	}
	err = os.Lchown(path, -1, gid)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: make the aggregator a member of the group (SupplementaryGroups= in a unit, supplementalGroups in a pod), or give it CAP_CHOWN", err)
	}
	return err
}

// ownDirectory reports whether the socket's directory is the daemon's and there
// for the socket and its lock alone: one that has anything else in it is left as
// it is.
func ownDirectory(socket string) bool {
	dir, name := filepath.Split(socket)
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != directoryMode {
		return false
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Geteuid() {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() != name && e.Name() != name+lockSuffix
	})
}

// enters reports whether the members of a group may enter a directory.
func enters(st os.FileInfo, gid int) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Gid) == gid {
		return st.Mode().Perm()&0o010 != 0
	}
	return st.Mode().Perm()&0o001 != 0
}
