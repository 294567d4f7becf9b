package config

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	// A mounted ConfigMap: the file is a link through a directory link that is
	// swapped as a whole.
	for _, version := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "weir.yaml"), version)
	}
	link := func(to, name string) {
		t.Helper()
		tmp := filepath.Join(dir, "tmp")
		if err := os.Symlink(to, tmp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", "..data")
	file := filepath.Join(dir, "weir.yaml")
	link("..data/weir.yaml", "weir.yaml")

	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan struct{}, 10)
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, []string{file}, func() { changes <- struct{}{} }) }()

	time.Sleep(100 * time.Millisecond) // lets the watch begin; a change before it is not its matter
	write(t, filepath.Join(dir, "unrelated"), "x")
	select {
	case <-changes:
		t.Fatal("a change of another file counted")
	case <-time.After(2 * settle):
	}
	for n := 0; ; n++ { // once more for a watch that begins late
		link([]string{"v2", "v1"}[n%2], "..data")
		select {
		case <-changes:
		case <-time.After(5 * time.Second):
			if n < 12 {
				continue
			}
			t.Fatal("the swapped link was not seen")
		}
		break
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
