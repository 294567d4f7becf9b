package source

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// debounce is the time in which the file events of one commit are combined.
const debounce = 100 * time.Millisecond

// watchSet returns the directories to watch at the moment.
type watchSet func() []string

// notifier wakes the poller when a ref of a local repository changes.
type notifier struct {
	dirs watchSet
	wake func()
	log  *slog.Logger
	fs   *fsnotify.Watcher
}

func newNotifier(dirs watchSet, wake func(), log *slog.Logger) (*notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &notifier{dirs: dirs, wake: wake, log: log, fs: w}, nil
}

// sync adds watches for new directories. Watches of removed directories end automatically.
func (n *notifier) sync() {
	for _, dir := range n.dirs() {
		if err := n.fs.Add(dir); err != nil {
			n.log.Debug("directory is not watched", slog.String("dir", dir), slog.Any("error", err))
		}
	}
}

// run wakes the poller after changes of the refs on the disk, until ctx ends. Several events in a short
// time cause one wake.
func (n *notifier) run(ctx context.Context) {
	defer func() {
		if err := n.fs.Close(); err != nil {
			n.log.Debug("closing the watch", slog.Any("error", err))
		}
	}()
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-n.fs.Events:
			if !ok {
				return
			}
			if concernsRef(e) {
				timer.Reset(debounce)
			}
		case err, ok := <-n.fs.Errors:
			if !ok {
				return
			}
			// Events were lost, so the refs may have changed.
			n.log.Debug("watching", slog.Any("error", err))
			timer.Reset(debounce)
		case <-timer.C:
			n.wake()
		}
	}
}

// concernsRef reports whether an event may mean that a ref changed. A Git directory also contains the index
// and locks, which change all the time.
func concernsRef(e fsnotify.Event) bool {
	if e.Has(fsnotify.Chmod) && e.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Base(e.Name)
	if strings.HasSuffix(name, ".lock") {
		return false
	}
	inRefs := strings.Contains(filepath.ToSlash(e.Name), "/refs/")
	return inRefs || name == "HEAD" || name == "packed-refs" || name == "refs"
}
