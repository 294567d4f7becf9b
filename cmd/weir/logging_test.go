package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/redact"
)

// Programs read the log by its keys: time, level and msg first, then the facts.
func TestLogKeys(t *testing.T) {
	var out bytes.Buffer
	l := logFlags{level: "info", format: "auto"}
	log, err := l.logger(surroundings{stderr: &out, getenv: func(string) string { return "" }, secrets: &redact.Registry{}})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("left out")
	log.Info("pass changed AWS", "target", "prod", "done", 2, "password", "hunter2", "token", "abc")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("not one line of JSON: %v: %s", err, &out)
	}
	if got, want := slices.Sorted(maps.Keys(line)), []string{"done", "level", "msg", "password", "target", "time", "token"}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	if line["level"] != "INFO" || line["msg"] != "pass changed AWS" || line["target"] != "prod" || line["done"] != 2.0 {
		t.Errorf("line %v", line)
	}
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "abc") {
		t.Errorf("secrets in %s", &out)
	}
	out.Reset()
	l.format = "text"
	if log, err = l.logger(surroundings{stderr: &out, getenv: func(string) string { return "" }, secrets: &redact.Registry{}}); err != nil {
		t.Fatal(err)
	}
	log.Info("weir runs", "targets", 3)
	if got := out.String(); !strings.Contains(got, "INF weir runs targets=3") || strings.Contains(got, "\x1b") {
		t.Errorf("text for people, without a terminal: %q", got)
	}
}
