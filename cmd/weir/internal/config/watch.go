package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is the time that a changed file must stay unchanged before it is read. An editor writes in
// several steps, and a half-written file must not be reported as invalid.
const settle = 200 * time.Millisecond

// Watch calls changed after the content of any of the files has changed, and returns when ctx ends. It
// watches the files' directories, because editors and mounted ConfigMaps replace a file or link with a new
// one.
func Watch(ctx context.Context, files []string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer func() { _ = w.Close() }() // an error can be ignored here
	seen := map[string]bool{}
	for _, f := range files {
		if dir := filepath.Dir(f); !seen[dir] {
			seen[dir] = true
			if err := w.Add(dir); err != nil {
				return fmt.Errorf("watch configuration: %s: %w", dir, err)
			}
		}
	}
	last := digest(files)
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events:
			if !ok {
				return nil
			}
			timer.Reset(settle)
		case _, ok := <-w.Errors:
			if !ok {
				return nil
			}
			// Events may have been lost; compare the content.
			timer.Reset(settle)
		case <-timer.C:
			if now := digest(files); !bytes.Equal(now, last) {
				last = now
				changed()
			}
		}
	}
}

// digest returns a hash of the files' contents. An unreadable file counts as empty.
func digest(files []string) []byte {
	h := sha256.New()
	for _, f := range files {
		content, err := os.ReadFile(f)
		fmt.Fprintf(h, "%d %t\n", len(content), err == nil)
		h.Write(content)
	}
	return h.Sum(nil)
}
