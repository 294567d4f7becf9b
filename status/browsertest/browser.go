// Package browsertest drives a headless Chromium in tests, over a pipe and by the
// DevTools protocol: https://chromedevtools.github.io/devtools-protocol/. A test is
// skipped where there is no Chromium, and in short runs.
package browsertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// patience bounds what a browser is waited for. A busy machine takes long, and no
// test says how long.
const patience = 90 * time.Second

// Browser is a headless Chromium that runs as long as the test that started it.
type Browser struct {
	out io.Writer

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	heard   map[string]func(method string, params json.RawMessage) // by session
	gone    error
}

type answer struct {
	result json.RawMessage
	err    error
}

// Start starts a browser for a test and those below it, or skips the test where
// there is none. It does not check certificates: servers in tests have their own.
func Start(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("no Chromium on this machine")
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "weir-browser-")
	if err != nil {
		t.Fatal(err)
	}
	// Not by the test's context: that would kill the browser before it can end its children.
	cmd := exec.Command(binary,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--ignore-certificate-errors", "--user-data-dir="+profile,
		"--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the browser reads 3 and writes 4
	if err := cmd.Start(); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	_ = theirIn.Close()
	_ = theirOut.Close()
	b := &Browser{out: ourOut, waiting: map[int]chan answer{}, heard: map[string]func(string, json.RawMessage){}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(ourIn)
	}()
	t.Cleanup(func() {
		_ = ourOut.Close()                                                  // the browser ends with it
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // one that hangs keeps no test
		_ = cmd.Wait()
		kill.Stop()
		<-read
		_ = ourIn.Close()
		_ = os.RemoveAll(profile) // a child that ends late may still write there: that fails no test
	})
	return b
}

// read hands on what the browser says, until it ends.
func (b *Browser) read(from io.Reader) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.gone = errors.New("the browser has ended")
			for id, wait := range b.waiting {
				wait <- answer{err: b.gone}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m struct {
			ID        int
			Method    string
			SessionID string
			Params    json.RawMessage
			Result    json.RawMessage
			Error     *struct{ Message string }
		}
		if err := json.Unmarshal(raw[:len(raw)-1], &m); err != nil {
			continue
		}
		b.mu.Lock()
		wait, hear := b.waiting[m.ID], b.heard[m.SessionID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.Method != "":
			if hear != nil {
				hear(m.Method, m.Params)
			}
		case wait == nil:
		case m.Error != nil:
			wait <- answer{err: errors.New(m.Error.Message)}
		default:
			wait <- answer{result: m.Result}
		}
	}
}

// call gives a command to a session, or to the browser where that is empty.
func (b *Browser) call(session, method string, params any) (json.RawMessage, error) {
	wait := make(chan answer, 1)
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		return nil, b.gone
	}
	b.last++
	id := b.last
	b.waiting[id] = wait
	body := map[string]any{"id": id, "method": method}
	if session != "" {
		body["sessionId"] = session
	}
	if params != nil {
		body["params"] = params
	}
	raw, err := json.Marshal(body)
	if err == nil {
		_, err = b.out.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-wait:
		if a.err != nil {
			return nil, fmt.Errorf("%s: %w", method, a.err)
		}
		return a.result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer in %s", method, patience)
	}
}
