// Package browsertest drives a headless Chromium in tests, by the keyboard alone.
package browsertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds the wait for what a page shows, on a machine that is very busy.
const patience = 90 * time.Second

// Browser is a browser with one page.
type Browser struct {
	t       *testing.T
	out     *os.File
	session string

	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	faults  []string
	ended   chan struct{}
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// Open starts a browser, or skips the test where there is none. It ends with the
// test. Certificates are not checked.
func Open(t *testing.T) *Browser {
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
	commands, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "weir-browser-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--ignore-certificate-errors", "--remote-debugging-pipe", "--window-size=1280,1000", "--user-data-dir="+profile)
	cmd.ExtraFiles = []*os.File{commands, theirs} // 3 and 4, as the browser has them
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = commands.Close(), theirs.Close() // the browser has its own
	b := &Browser{t: t, out: ours, waiting: map[int]chan answer{}, ended: make(chan struct{})}
	go b.read(answers)
	t.Cleanup(func() {
		_ = ours.Close()                                                          // the browser ends with it
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() }) // it is only in the way
		_ = cmd.Wait()
		kill.Stop()
		<-b.ended
		_ = answers.Close()
		_ = os.RemoveAll(profile) // what is left is in the directory for such things
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read hands answers to those who wait for them, and keeps what went wrong.
func (b *Browser) read(from *os.File) {
	defer close(b.ended)
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			answer
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; c != nil {
			delete(b.waiting, m.ID)
			c <- m.answer
		}
		if what := string(m.Params); m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" && strings.Contains(what, `"level":"error"`) ||
			m.Method == "Runtime.consoleAPICalled" && strings.Contains(what, `"type":"error"`) {
			b.faults = append(b.faults, what)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) call(method string, params, result any) {
	b.t.Helper()
	if err := b.try(method, params, result); err != nil {
		b.t.Fatalf("browser: %s: %v", method, err)
	}
}

func (b *Browser) try(method string, params, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	c := make(chan answer, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = c
	b.mu.Unlock()
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, params, b.session})
	if err != nil {
		return err
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case a := <-c:
		if a.Error != nil {
			return errors.New(a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-b.ended:
		return errors.New("it has ended")
	case <-time.After(patience):
		return errors.New("no answer")
	}
}

// Go opens an address.
func (b *Browser) Go(url string) {
	b.t.Helper()
	var loaded struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": url}, &loaded)
	if loaded.ErrorText != "" {
		b.t.Fatalf("browser: %s: %s", url, loaded.ErrorText)
	}
}

// Text is the value of an expression in the page. Between two pages there is none.
func (b *Browser) Text(expression string) string {
	var out struct{ Result struct{ Value any } }
	if err := b.try("Runtime.evaluate", map[string]any{"expression": expression}, &out); err != nil || out.Result.Value == nil {
		return ""
	}
	return fmt.Sprint(out.Result.Value)
}

// Await waits until an expression in the page is true.
func (b *Browser) Await(what, expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); b.Text("document.readyState === 'complete' && Boolean("+expression+")") != "true"; {
		if time.Now().After(deadline) {
			b.t.Fatalf("browser: %s: not at %s:\n%s", what, b.Text("location.href"), b.Text("document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Shows waits until the page has a text.
func (b *Browser) Shows(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Await("shows "+text, "document.body.innerText.includes("+string(quoted)+")")
}

// Press presses a key: Tab, Enter, Space, ArrowDown.
func (b *Browser) Press(name string) {
	b.t.Helper()
	keys := map[string]struct {
		key, text string
		code      int
	}{"Tab": {"Tab", "", 9}, "Enter": {"Enter", "\r", 13}, "Space": {" ", " ", 32}, "ArrowDown": {"ArrowDown", "", 40}}
	k, ok := keys[name]
	if !ok {
		b.t.Fatalf("browser: there is no key %q", name)
	}
	kind := "rawKeyDown"
	if k.text != "" {
		kind = "keyDown"
	}
	event := map[string]any{"type": kind, "key": k.key, "code": name, "text": k.text, "windowsVirtualKeyCode": k.code, "nativeVirtualKeyCode": k.code}
	b.call("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	b.call("Input.dispatchKeyEvent", event, nil)
}

// Type writes into what has the focus.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// TabTo goes on with Tab until what a selector names has the focus.
func (b *Browser) TabTo(selector string) {
	b.t.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		b.t.Fatal(err)
	}
	at := "document.activeElement !== null && document.activeElement.matches(" + string(quoted) + ")"
	for range 200 {
		if b.Text(at) == "true" {
			return
		}
		b.Press("Tab")
	}
	b.t.Fatalf("browser: the keyboard does not lead to %s at %s:\n%s", selector, b.Text("location.href"), b.Text("document.body.innerText"))
}

// Faults are what the browser's console has as errors.
func (b *Browser) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.faults...)
}

// Screenshot writes the page as it looks to a PNG file.
func (b *Browser) Screenshot(file string) {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if err := os.WriteFile(file, shot.Data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
