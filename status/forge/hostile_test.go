package forge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHostileAnswers has a forge say what no forge would, and no method may keep
// more of it than is bounded, ask for ever, or end the process.
func TestHostileAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	pull := func(change map[string]any) string {
		p := map[string]any{
			"number": 7, "iid": 7, "id": 70, "title": "t", "state": "open", "user": map[string]any{"login": "ada"}, "author": map[string]any{"username": "ada"},
			"head": map[string]any{"sha": "a", "ref": "b", "repo": map[string]any{"id": 1}}, "base": map[string]any{"ref": "main", "repo": map[string]any{"id": 1}},
			"updated_at": "2026-05-01T12:00:00Z", "created_at": "2026-05-01T12:00:00Z",
		}
		for k, v := range change {
			p[k] = v
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	labels := make([]any, 10_000)
	for i := range labels {
		labels[i] = map[string]any{"name": fmt.Sprint(i)}
	}
	plain := make([]any, 10_000)
	for i := range plain {
		plain[i] = fmt.Sprint(i)
	}
	for name, say := range map[string]string{
		"empty objects":   "[" + strings.Repeat("{},", 200_000) + "{}]",
		"nulls":           "[" + strings.Repeat("null,", 1000) + "null]",
		"deep lists":      strings.Repeat("[", 20_000),
		"deep objects":    strings.Repeat(`{"a":`, 20_000),
		"long title":      "[" + pull(map[string]any{"title": strings.Repeat("é", 100_000), "body": long}) + "]",
		"long names":      "[" + pull(map[string]any{"sha": long, "source_branch": long, "target_branch": long, "web_url": long, "html_url": long, "merge_commit_sha": long, "user": map[string]any{"login": long}, "author": map[string]any{"username": long}, "head": map[string]any{"sha": long, "ref": long}, "base": map[string]any{"sha": long, "ref": long}}) + "]",
		"many labels":     "[" + pull(map[string]any{"labels": labels}) + "]",
		"many labels too": "[" + pull(map[string]any{"labels": plain}) + "]",
		"negative":        "[" + pull(map[string]any{"number": -7, "iid": -7, "id": -1}) + "]",
		"huge number":     `[{"number":1e400,"iid":99999999999999999999}]`,
		"times":           "[" + pull(map[string]any{"updated_at": "9999999-01-01", "created_at": "soon", "merged_at": ""}) + "]",
		"no text":         "[{\"number\":7,\"iid\":7,\"title\":\"\\ud800\xff\x00\"}]",
		"the same pages":  "[" + strings.Repeat(pull(nil)+",", 99) + pull(nil) + "]",
		"endless":         "[" + strings.Repeat(pull(map[string]any{"body": long})+",", 3),
		"text":            long,
	} {
		eachForge(t, func(t *testing.T, f *fakeForge, _ Client) {
			synctest.Test(t, func(t *testing.T) {
				f.answer = func(*http.Request) (int, http.Header, string) {
					return 200, http.Header{"Link": {`<https://git.example.com/x?page=2>; rel="next"`}, "X-Next-Page": {"2"}, "Etag": {`"` + strings.Repeat("e", 60_000) + `"`}, "X-Total-Count": {"-5"}, "X-Total": {"99999999999999999999"}}, say
				}
				c := f.client(t)
				before := heap()
				list, cursor, _, err := c.Pulls(t.Context(), "")
				said, _ := c.CommentsSince(t.Context(), time.Time{})
				if grown := heap() - before; grown > 40<<20 {
					t.Errorf("%s: %d MiB are kept", name, grown>>20)
				}
				if len(cursor) > 8<<10 || len(list) > maxItems || len(said) > maxItems {
					t.Errorf("%s: a cursor of %d bytes, %d pull requests, %d comments, %v", name, len(cursor), len(list), len(said), err)
				}
				for _, p := range list {
					if len(p.Title) > maxTitle+3 || len(p.Labels) > maxLabels || len(p.Author+p.WebURL+p.HeadSHA+p.HeadRef+p.BaseRef+p.BaseSHA+p.MergeSHA) > 7*maxWord {
						t.Errorf("%s: %+v", name, p)
					}
				}
				f.requests = nil
				calls(t.Context(), c)
				if n := len(f.requests); n > 200 {
					t.Errorf("%s: %d requests", name, n)
				}
				f.requests, f.bodies = nil, nil
				runtime.KeepAlive(c)
			})
		})
	}
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
