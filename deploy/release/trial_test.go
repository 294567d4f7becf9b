package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// showTime is the time in which a release shows its demo to somebody who has just unpacked it.
const showTime = 5 * time.Second

// A release works without Go, git, a home directory or anything else of the machine: its demo shows pools. make
// release-check gives the archive.
func TestAnUnpackedReleaseShowsItsDemo(t *testing.T) {
	archive := os.Getenv("WEIR_RELEASE_ARCHIVE")
	if archive == "" {
		t.Skip("WEIR_RELEASE_ARCHIVE names no archive: make release-check does")
	}
	dir := t.TempDir()
	program := unpack(t, archive, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "demo", "--dir", filepath.Join(dir, "demo")) //nolint:gosec // the archive's own program
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = []string{}
	var log strings.Builder
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	page, err := lines.ReadString('\n')
	printed := time.Since(begun)
	if err != nil {
		t.Fatalf("it prints no address: %v, %v\n%s", err, cmd.Wait(), &log)
	}
	for !shows(ctx, strings.TrimSpace(page), "dev-eu-spot-workers") && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	shown := time.Since(begun)
	t.Logf("the address was printed after %v, the page showed a pool after %v", printed, shown)
	if shown > showTime {
		t.Errorf("the page showed a pool after %v, and should within %v\n%s", shown, showTime, &log)
	}
	cancel()
	_, _ = io.Copy(io.Discard, lines) // until the process ends
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &exit) {
		t.Error(err)
	}
}

// shows reports whether a page has a text.
func shows(ctx context.Context, page, text string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return err == nil && strings.Contains(string(body), text)
}

// unpack writes the program of an archive to a directory, and returns its path.
func unpack(t *testing.T, archive, dir string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("the archive has no program: %v", err)
		}
		if filepath.Base(h.Name) != "weir" || h.Typeflag != tar.TypeReg || h.Mode&0o100 == 0 {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "weir")
		if err := os.WriteFile(to, content, 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
		return to
	}
}
