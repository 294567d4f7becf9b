package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The shown configuration says the same as the file.
func TestShownSaysWhatHolds(t *testing.T) {
	const file = `
apiVersion: weir.dev/v1alpha1
kind: Config
instance: prod
stateDir: /var/lib/weir
interval: 90s
sources:
  - name: fleet
    url: https://git.example.com/platform/fleet.git
    ref: {branch: main}
    auth: {tokenFile: /etc/weir/token}
targets:
  - name: "prod-{1}"
    path: overlays/*
    region: eu-central-1
    accountID: "012345678901"
    vars: {SIZE: "3", EMPTY: "", YES: "true"}
    prune: {enabled: true, limit: 25%}
    windows: [{days: [mon, fri], start: "09:00", end: "17:30", timezone: Europe/Berlin}]
    maxConcurrentRollouts: 2
    table: {dev: {accountID: "012345678902", vars: {A: "1"}}, "0123": {region: eu-west-1}, bare: }
`
	env := Env{Getenv: func(string) string { return "" }}
	c, faults := Parse("/etc/weir/weir.yaml", []byte(file), env)
	if c == nil {
		t.Fatal(faults)
	}
	text, err := c.Shown()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"interval: 1m30s\n", "keepVersions: 10\n", "listen: " + DefaultListen, "limit: 25%\n", "tokenFile: /etc/weir/token\n", `accountID: "012345678901"`, `SIZE: "3"`, `YES: "true"`} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	again, faults := Parse("/etc/weir/weir.yaml", []byte(text), env)
	if again == nil {
		t.Fatalf("what is shown is no configuration: %v\n%s", faults, text)
	}
	if diff := cmp.Diff(c, again, withoutPlaces); diff != "" {
		t.Errorf("what is shown says something else (-was +is):\n%s", diff)
	}
}

// Every kind of value that a configuration may have can be shown.
func TestShownKnowsEveryKey(t *testing.T) {
	c := &Config{}
	fill(reflect.ValueOf(c).Elem())
	text, err := c.Shown()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("it shows a password:\n%s", text)
	}
	if n := strings.Count(text, "https://git.example.com/x"); n < 20 {
		t.Errorf("it shows %d texts only:\n%s", n, text)
	}
}

// fill gives every member a value that says something.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		v.SetInt(int64(time.Hour))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("KEY"), element)
	case reflect.String:
		v.SetString("https://bot:hunter2@git.example.com/x?token=hunter2#hunter2")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		// The configuration has none: weir fills it in.
	default:
		v.SetInt(7)
	}
}
