package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/members"
)

// What is written piece by piece is what the library writes at once.
func TestIndentedIsMarshalIndent(t *testing.T) {
	b := fleet()
	targets := apiTargets{Held: "<somebody> & others"}
	for _, s := range b.Targets.All() {
		targets.Targets = append(targets.Targets, apiTargetOf(s))
	}
	events, err := b.Activity.QueryEvents(history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	type own struct {
		Lists [][]string       `json:"lists"`
		Maps  []map[string]any `json:"maps"`
		Bytes []byte           `json:"bytes"`
		Raw   json.RawMessage  `json:"raw"`
		Array [2]int           `json:"array"`
	}
	for name, v := range map[string]any{
		"pools":             apiPools{Pools: b.Targets.Pools(), LaunchConfigs: b.Targets.LaunchConfigs()},
		"targets":           targets,
		"no targets":        apiTargets{Targets: []apiTarget{}},
		"targets not known": apiTargets{},
		"pulls":             apiPulls{Pulls: []apiPull{{Title: "a"}, {Title: "b", Plans: nil}}},
		"events":            history.EventList{Events: events},
		"passes":            history.PassList{Passes: []history.Run{{}, {}}},
		"standing":          standing{Instance: "a", View: members.View{}},
		"crew":              members.View{Members: []members.Member{{}, {Name: "<a>"}}, Owned: []members.Owned{}},
		"kinds": own{
			Lists: [][]string{{"a", "b"}, {}, nil}, Maps: []map[string]any{{}, nil, {"b": 1, "a": []int{}}}, Bytes: []byte("bytes"), Raw: json.RawMessage(`{"b":[1, 2],"a":{}}`),
		},
		"zero": own{}, "nothing": struct{}{}, "all left out": struct {
			A string `json:"a,omitempty"`
		}{},
		"tagged otherwise": struct {
			A []int `json:"a,omitempty"`
			B int   `json:",omitempty"`
			c int
		}{B: 1, c: 1},
		"list": []string{"a"}, "nil": nil, "pointer": &apiTargets{},
	} {
		want, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := indented(&got, v); err != nil || got.String() != string(want)+"\n" {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got.String(), want)
		}
	}
	if err := indented(&strings.Builder{}, map[string]any{"a": make(chan int)}); err == nil {
		t.Error("what cannot be encoded is no error")
	}
}

// weighing is a reader of an answer that weighs what is held while it reads.
type weighing struct {
	httptest.ResponseRecorder
	bytes, writes int
	most          uint64
}

func (w *weighing) Write(b []byte) (int, error) {
	if w.bytes += len(b); w.writes%100 == 0 {
		w.most = max(w.most, live())
	}
	w.writes++
	return len(b), nil
}

// live is what is held, in bytes.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// However large the fleet is, no answer about it is held as a whole.
func TestALargeAnswerIsHeldByNobody(t *testing.T) {
	h := Handler(large(t, 1), Options{})
	w := &weighing{ResponseRecorder: *httptest.NewRecorder()}
	before := live()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pools", nil))
	if held := max(w.most, before) - before; w.bytes < 16<<20 || held > uint64(w.bytes)/4 {
		t.Errorf("%d MiB are held for an answer of %d", held>>20, w.bytes>>20)
	} else {
		t.Logf("%d KiB are held for an answer of %d KiB in %d writes", held>>10, w.bytes>>10, w.writes)
	}
}
