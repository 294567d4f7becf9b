package statustest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Listener reads a stream of server-sent events.
type Listener struct {
	t    *testing.T
	Body io.ReadCloser
	in   *bufio.Scanner
}

// Listen opens the event stream of the server at an address.
func Listen(t *testing.T, url string) *Listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is %s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	l := &Listener{t: t, Body: answer.Body, in: bufio.NewScanner(answer.Body)}
	if name, _ := l.Next(); name != "hello" {
		t.Fatalf("the first message is %q", name)
	}
	return l
}

// Next returns the next message, "beat" for a heartbeat and "" at the end.
func (l *Listener) Next() (name string, change Change) {
	l.t.Helper()
	for l.in.Scan() {
		line := l.in.Text()
		switch {
		case strings.HasPrefix(line, ":"):
			name = "beat"
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &change); err != nil {
				l.t.Fatal(err)
			}
		case line == "" && name != "":
			return name, change
		}
	}
	return "", change
}

// Change is a message of a stream.
type Change struct {
	All     bool
	Targets []string
}
