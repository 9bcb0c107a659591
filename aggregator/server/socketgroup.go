package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func (s *Server) reloaded() {
	if err := s.giveSocket(); err != nil {
		s.cfg.Logger.Error("the socket's group stays as it was", "error", err)
	}
	s.streams.review()
}

// giveSocket gives the socket to the configured group. Without one, it restores the daemon's own
// group if an earlier call changed it.
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

// ownDirectory reports whether the daemon owns the socket's directory (mode 0750) and only the
// socket and its lock are in it. Other directories keep their group.
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

func enters(st os.FileInfo, gid int) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Gid) == gid {
		return st.Mode().Perm()&0o010 != 0
	}
	return st.Mode().Perm()&0o001 != 0
}
