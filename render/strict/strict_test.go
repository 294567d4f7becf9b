package strict_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// share is a type that reads text in its own way.
type share int

func (s *share) UnmarshalText(b []byte) error {
	if _, err := fmt.Sscanf(string(b), "%d%%", (*int)(s)); err != nil {
		return fmt.Errorf("%q is no share", b)
	}
	return nil
}

// either is a type that reads nodes in its own way: a text, or a list of them.
type either []string

func (e *either) DecodeYAML(d *strict.Decoder, n *yaml.Node, p intent.Path) {
	if text, ok := strict.Text(n); ok {
		*e = either{text}
		return
	}
	d.Read(n, (*[]string)(e), p)
}

type inner struct {
	Size  *int32 `k:"size" check:"min=1,max=9"`
	Need  string `k:"need" check:"required=v2"`
	Share share  `k:"share"`
}

type shared struct {
	Embedded string `k:"embedded"`
}

type document struct {
	shared
	Text    string            `k:"text" check:"minlen=2"`
	Mode    string            `k:"mode" enum:"on|off|both" default:"both"`
	Colour  *string           `k:"colour" enum:"red|green"`
	Flag    bool              `k:"flag"`
	Number  int32             `k:"number"`
	Float   float64           `k:"float"`
	Wait    time.Duration     `k:"wait"`
	Either  either            `k:"either"`
	Inner   inner             `k:"inner"`
	List    []inner           `k:"list"`
	Rows    map[string]inner  `k:"rows"`
	Texts   map[string]string `k:"texts"`
	Free    any               `k:"free"`
	Old     string            `k:"old" in:"v1"`
	Later   string            `k:"later" later:"true"`
	Unnamed string
}

var limits = strict.ParseLimits("# how it is written\nDoc v2 texts{} maxLength=3\nDoc v2 texts minProperties=1\nDoc v2 list maxItems=2\nDoc v2 list[].size minimum=5\nDoc v2 text pattern=^a enum=ab|abc\nDoc v2 either[] minLength=1\n")["Doc v2"]

// read decodes a text in a language, and returns the faults as line:column code path: words.
func read(t testing.TB, kubernetes bool, text string) (document, []string, map[string]diag.Position) {
	t.Helper()
	var faults []string
	at := map[string]diag.Position{}
	d := &strict.Decoder{
		Language: &strict.Language{Tag: "k", Whole: "the document", Code: "unknown-key", Kubernetes: kubernetes}, Version: "v2", Limits: limits,
		Report: func(f strict.Fault) {
			g := f.In("f.yaml")
			faults = append(faults, strings.TrimPrefix(fmt.Sprintf("%s %s %s %s", g.Position, f.Code, f.Path, f.Detail), "f.yaml:"))
		},
		Visit: func(p intent.Path, n *yaml.Node) {
			at[p.String()] = diag.Position{File: "f.yaml", Line: n.Line, Column: n.Column}
		},
	}
	var out document
	if n := d.Parse([]byte(text), 1<<16); n != nil {
		d.Decode(n, &out)
	}
	return out, faults, at
}

const both, lax, kube = "both", "lax", "kube"

func TestFaults(t *testing.T) {
	tests := []struct {
		in, text string
		want     []string
	}{
		{both, "", []string{"f.yaml empty  "}},
		{both, "~", []string{"f.yaml empty  "}},
		{both, "a: [", []string{"1 yaml-syntax  "}},
		// Of some the parser says no line.
		{both, "a: b\nc: \"x\x00\"", []string{"2:6 yaml-syntax  "}},
		{both, "a: b\nc: \xff", []string{"2:4 yaml-syntax  "}},
		{both, "a: b\nc: *secret", []string{"2 yaml-syntax  "}},
		{both, "c: |0\n  x\n", []string{"1 yaml-syntax  "}},
		{both, "%YAML 9.9\n---\na: b\n", []string{"1 yaml-syntax  "}},
		{both, strings.Repeat("[", 20_000), []string{"1 yaml-syntax  "}},
		{both, "[]", []string{"1:1 wrong-type  "}},
		{both, "text", []string{"1:1 wrong-type  "}},
		{both, "{}", []string{"1:1 missing-required inner.need "}},
		{both, strings.Repeat("#", 1<<17), []string{"f.yaml too-large  "}},
		{both, "inner: {need: a}\n---\nb: 1", []string{"2:1 several-documents  "}},
		{both, "inner: {need: a}\n---\nb: [", []string{"3 yaml-syntax  "}},
		// Bytes.
		{both, "old: \x00", []string{"1:6 yaml-syntax  "}},
		{both, "old: \xff", []string{"1:6 yaml-syntax  "}},
		{both, "inner:\n\tneed: a", []string{"2 yaml-syntax  "}},
		{both, "\xef\xbb\xbfflag: true", nil},
		{both, "number: 1e3", nil},
		{both, "number: 1e300", []string{"1:9 wrong-type number "}},
		{both, "number: 99999999999999999999", []string{"1:9 wrong-type number "}},
		{kube, "text: 2001-01-0", []string{"1:7 bad-enum text "}},
		// Keys.
		{both, "flga: true\nUnnamed: a", []string{`1:1 unknown-key flga did you mean "flag"?`, `2:1 unknown-key Unnamed known`}},
		{both, "old: a", []string{"1:1 unknown-key old it belongs to version v1"}},
		{both, "later: a", []string{"1:8 not-supported later "}},
		{both, "flag: true\nflag: false", []string{"2:1 duplicate-key flag "}},
		{both, "flag:\nflag: false", []string{"2:1 duplicate-key flag "}},
		{both, "texts: {a: b, a: c}", []string{"1:15 duplicate-key texts.a "}},
		{both, "rows: {a: {need: a}, a: {}}", []string{"1:22 duplicate-key rows.a "}},
		{both, "? [a]\n: b", []string{"1:3 wrong-type  "}},
		{both, "<<: {flag: true}", []string{"1:1 unknown-key << known"}},
		// Types.
		{both, "flag: maybe\nnumber: many\nlist: {}\nrows: []\ntexts: a\nwait: [a]", []string{"1:7 wrong-type flag ", "2:9 wrong-type number ", "3:7 wrong-type list ", "4:7 wrong-type rows ", "5:8 wrong-type texts ", "6:7 wrong-type wait "}},
		{both, "number: '3'", []string{"1:9 wrong-type number write it without quotes"}},
		{both, "number: 3000000000", []string{"1:9 out-of-range number "}},
		{both, "float: .inf", []string{"1:8 wrong-type float "}},
		{both, "float: 1e999", []string{"1:8 wrong-type float "}},
		{both, "float: -1", []string{"1:8 out-of-range float "}},
		{both, "inner: {need: a, share: [1]}", []string{"1:25 wrong-type inner.share "}},
		{both, "inner: {need: a, share: half}", []string{"1:25 bad-value inner.share "}},
		{both, "list: [~]", []string{"1:8 wrong-type list[0] "}},
		{lax, "wait: 5", []string{"1:7 bad-value wait write"}},
		{kube, "wait: 5", []string{"1:7 wrong-type wait "}},
		{kube, "wait: 5 hours", []string{"1:7 wrong-type wait write"}},
		{kube, "text: 12", []string{"1:7 wrong-type text write it in quotes"}},
		{kube, "text: yes", []string{"1:7 wrong-type text write it in quotes"}},
		{kube, "flag: 'true'", []string{"1:7 wrong-type flag "}},
		{lax, "flag: yes", []string{"1:7 wrong-type flag "}},
		{kube, "text: !!binary YQ==", []string{"1:7 wrong-type text "}},
		// Limits.
		{both, "text: a", []string{"1:7 out-of-range text "}},
		{both, "text: ad", []string{`1:7 bad-enum text it must be "ab" or "abc"`}},
		{both, "mode: bot", []string{`1:7 bad-enum mode it must be`}},
		{both, "colour: blue", []string{`1:9 bad-enum colour it must be "red" or "green"`}},
		{kube, "inner: {need: a, size: 10}", []string{"1:24 out-of-range inner.size "}},
		{kube, "list: [{need: a, size: 4}, {need: b, size: 5}, {need: c, size: 0}]", []string{"1:24 out-of-range list[0].size ", "1:64 out-of-range list[2].size ", "1:7 out-of-range list "}},
		{both, "texts: {a: long}", []string{"1:12 out-of-range texts.a "}},
		{both, "texts: {}", []string{"1:8 out-of-range texts "}},
		{both, "either: ['', a]", []string{"1:10 out-of-range either[0] "}},
		{both, "list: [{}, {need: ~}]", []string{"1:8 missing-required list[0].need ", "1:12 missing-required list[1].need "}},
		{both, "rows: {a: , b: {x: 1}}", []string{"1:17 unknown-key rows.b.x known", "1:16 missing-required rows.b.need "}},
		// Aliases.
		{lax, "texts: &a {a: b}", []string{"1:8 yaml-alias texts write the value out"}},
		{lax, "texts: {a: &a b, b: *a}", []string{"1:12 yaml-alias texts.a write the value out", "1:21 yaml-alias texts.b write the value out"}},
		{lax, "flag: &a ~", []string{"1:7 yaml-alias flag write the value out"}},
		{kube, "text: &a ab\ntexts: {a: *a, *a : b}", nil},
	}
	for _, tt := range tests {
		for _, kubernetes := range []bool{false, true} {
			if tt.in == lax && kubernetes || tt.in == kube && !kubernetes {
				continue
			}
			_, got, _ := read(t, kubernetes, tt.text)
			if !strings.Contains(tt.text, "inner") && tt.text != "{}" { // which is then missing
				got = withoutMissing(got)
			}
			ok := len(got) == len(tt.want)
			for i := range got {
				want := ""
				if i < len(tt.want) {
					want = tt.want[i]
				}
				if kubernetes && strings.HasSuffix(want, " known") {
					want = strings.TrimSuffix(want, "known") // a kind has very many
				}
				ok = ok && strings.HasPrefix(got[i], want)
			}
			if !ok {
				t.Errorf("kubernetes %v, %q:\ngot  %q\nwant %q", kubernetes, tt.text, got, tt.want)
			}
		}
	}
}

func withoutMissing(faults []string) (out []string) {
	for _, f := range faults {
		if !strings.Contains(f, "missing-required inner.need") {
			out = append(out, f)
		}
	}
	return out
}

func TestValues(t *testing.T) {
	const text = `
embedded: e
text: abc
flag: true
number: 3
float: 1.5
wait: 1m
colour: green
either: a
inner: {need: w, size: 9, share: 20%}
list: [{need: w}]
rows: {a.b: {need: w}, c: }
texts: {a: b, c: }
`
	size, green := int32(9), "green"
	want := document{
		shared: shared{Embedded: "e"}, Text: "abc", Mode: "both", Colour: &green, Flag: true, Number: 3, Float: 1.5, Wait: time.Minute, Either: either{"a"},
		Inner: inner{Need: "w", Size: &size, Share: 20}, List: []inner{{Need: "w"}}, Rows: map[string]inner{"a.b": {Need: "w"}, "c": {}}, Texts: map[string]string{"a": "b", "c": ""},
	}
	for _, kubernetes := range []bool{false, true} {
		got, faults, at := read(t, kubernetes, text)
		if faults != nil {
			t.Errorf("faults %q", faults)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(document{})); d != "" {
			t.Errorf("kubernetes %v (-want +got):\n%s", kubernetes, d)
		}
		for path, want := range map[string]string{"": "f.yaml:2:1", "inner.size": "f.yaml:10:24", "list[0]": "f.yaml:11:8", `rows["a.b"]`: "f.yaml:12:8", "texts.c": "f.yaml:13:15", "text": "f.yaml:3:7"} {
			if got := at[path].String(); got != want {
				t.Errorf("%s is at %s, want %s", path, got, want)
			}
		}
	}
	// Scalars that only one of the two languages takes.
	if got, faults, _ := read(t, false, "text: ab\ninner: {need: 007}\ntexts: {a: yes, b: 1.0}"); faults != nil || got.Inner.Need != "007" || got.Texts["a"] != "yes" || got.Texts["b"] != "1.0" {
		t.Errorf("any scalar is text: %+v %q", got, faults)
	}
	if got, faults, _ := read(t, true, "inner: {need: w}\nflag: on\nnumber: 3.0\nfree: {a: [1, 1.5, off, ~, x, '1'], b: &b {c: 2001-01-01}, d: *b}"); faults != nil || !got.Flag || got.Number != 3 ||
		cmp.Diff(map[string]any{"a": []any{int64(1), 1.5, false, nil, "x", "1"}, "b": map[string]any{"c": "2001-01-01"}, "d": map[string]any{"c": "2001-01-01"}}, got.Free) != "" {
		t.Errorf("as Kubernetes reads: %+v %q", got, faults)
	}
}

// TestSecretsAreNotQuoted reads a value that is wrong in every field.
func TestSecretsAreNotQuoted(t *testing.T) {
	for key := range strings.FieldsSeq("text mode colour flag number float wait either inner list rows texts") {
		for _, value := range []string{"31337", "31337.5", "x31337", "[31337, [31337]]", "{a31: x31337}", "!!x 31337"} {
			d := &strict.Decoder{Language: &strict.Language{Tag: "k", Kubernetes: true}, Version: "v2", Limits: limits, Secret: true, Report: func(f strict.Fault) {
				if strings.Contains(f.Summary+f.Detail, "31337") {
					t.Errorf("%s: %s: %s %s", key, value, f.Summary, f.Detail)
				}
			}}
			d.Decode(d.Parse([]byte(key+": "+value), 1<<16), &document{})
		}
	}
}

// TestAliasBombsEnd reads a document that stands for very many nodes, and one that is in itself.
func TestAliasBombsEnd(t *testing.T) {
	bomb := "inner: {need: a}\nfree:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += "  " + string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 10), ", ") + "]\n"
	}
	twice := "inner: {need: a}\nfree:\n- &a {" + strings.Repeat("a: b, ", 5_000) + "}\n- [" + strings.Repeat("*a, ", 5_000) + "]"
	for _, text := range []string{bomb, twice, "list:\n- &a {" + strings.Repeat("a, ", 5_000) + "}\n- " + strings.Repeat("*a\n- ", 5_000) + "*a", "inner: {need: a}\nfree: &a [*a]", "inner: {need: a}\nfree: &a {b: *a}", "&a inner: {need: a}\nfree: " + strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if _, faults, _ := read(t, true, text); len(faults) == 0 {
			t.Errorf("it is read without a fault: %.60q", text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{"text: a\nlist: [{size: 3}]", "a: &a [*a]", "free: {a: 1e999, b: 2001-01-01, c: !!binary YQ==}", "\xef\xbb\xbftext: a", "rows: {a: {share: 5%}}", "? {a: b}\n: c", "wait: 5m\nfloat: 0x1p3\nnumber: 0o7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			t.Skip("too long to be interesting")
		}
		for _, kubernetes := range []bool{false, true} {
			got, faults, _ := read(t, kubernetes, text)
			again, same, _ := read(t, kubernetes, text)
			if !reflect.DeepEqual(got, again) || !reflect.DeepEqual(faults, same) {
				t.Errorf("two runs differ: %+v %q, %+v %q", got, faults, again, same)
			}
			if _, err := json.Marshal(got.Free); err != nil {
				t.Errorf("what is read is not JSON: %v", err)
			}
			if n := got.Number; len(faults) == 0 && strings.Count(text, "number") == 1 && n != 0 && !strings.ContainsAny(text, "123456789") {
				t.Errorf("number %d of %q", n, text)
			}
		}
	})
}
