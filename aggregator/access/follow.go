package access

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quietTime is how long the file's directory has to be quiet before the file
	// is read: an editor writes in several steps.
	quietTime = 100 * time.Millisecond
	// maxQuietWait bounds that in a directory that is never quiet.
	maxQuietWait = time.Second
	// recheck finds a directory that was replaced as a whole, with its watch.
	recheck = 10 * time.Second
)

// Follow reads the file again when it changes, and when something arrives on
// hangup, until ctx ends. Without a file it returns at once.
//
// Possible errors: those of watching.
func (c *Control) Follow(ctx context.Context, hangup <-chan os.Signal) error {
	if c.opts.File == "" {
		return nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration %s: %w", c.opts.File, err)
	}
	defer func() { _ = w.Close() }()
	if err := c.watch(w); err != nil {
		return err
	}
	// What changed between Open and the watch.
	_ = c.load(false)
	c.follow(ctx, w, hangup)
	return nil
}

// watch watches the directory of the file, and that of what it links to: a
// ConfigMap's file is a link through a link that is replaced in the same
// directory. Watching what is watched already does nothing.
func (c *Control) watch(w *fsnotify.Watcher) error {
	paths := []string{c.opts.File}
	if target, err := filepath.EvalSymlinks(c.opts.File); err == nil && target != c.opts.File {
		paths = append(paths, target)
	}
	for _, path := range paths {
		if err := w.Add(filepath.Dir(path)); err != nil {
			return fmt.Errorf("watch configuration %s: %w", c.opts.File, err)
		}
	}
	return nil
}

func (c *Control) follow(ctx context.Context, w *fsnotify.Watcher, hangup <-chan os.Signal) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	rest := time.NewTimer(time.Hour)
	rest.Stop()
	var first time.Time
	stir := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		rest.Reset(min(quietTime, max(0, first.Add(maxQuietWait).Sub(now))))
	}
	for lost := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			_ = c.load(true)
		case <-w.Events:
			stir()
			continue
		case err := <-w.Errors:
			// An overflow loses events: look at the file.
			c.log.Warn("watch of the configuration failed: reading it again", "error", err)
			stir()
			continue
		case <-rest.C:
			first = time.Time{}
			_ = c.load(false)
		case <-tick.C:
			_ = c.load(false)
		}
		err := c.watch(w)
		if err != nil && !lost {
			c.log.Warn("changes of the configuration are seen late", "error", err, "within", recheck)
		}
		lost = err != nil
	}
}
