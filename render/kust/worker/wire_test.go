package worker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const document = `# head
apiVersion: v1 # line
kind: ConfigMap
metadata: {name: "a", labels: {a: !mine b}}
data:
  text: |
    two
    lines
  list: [1, 2.5, true, null, 'x', &anchor y, *anchor]
# foot
`

// Objects arrive as they were sent, with aliases replaced by what they stand for.
func TestObjectsArrive(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(document), &doc); err != nil {
		t.Fatal(err)
	}
	sent := doc.Content[0]
	e := encoder{b: binary.AppendUvarint(nil, 1), nodes: 100}
	if !e.all([]*yaml.Node{sent}) {
		t.Fatal("it is not sent")
	}
	p := parser{rest: e.b}
	got := p.objects(100)
	if err := p.end(); err != nil || len(got) != 1 {
		t.Fatalf("%v, %d", err, len(got))
	}
	want := strings.Replace(printed([]*yaml.Node{sent}), "*anchor", "&anchor y", 1)
	if printed(got) != want {
		t.Errorf("got\n%s\nwant\n%s", printed(got), want)
	}
	for _, most := range []int{0, 5, 20} {
		e := encoder{nodes: most}
		p := parser{rest: e.b}
		if p.objects(most); e.all([]*yaml.Node{sent}) {
			t.Errorf("with room for %d it is sent", most)
		}
	}
}

// hostile are answers that a worker that somebody took over may send.
func hostile() map[string][]byte {
	sealed := func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[1:], uint32(len(b)-headerSize))
		return b
	}
	done := func(b ...byte) []byte { return sealed(append(append(frame(frameDone), 0, 0), b...)) }
	huge := frame(frameDone)
	binary.LittleEndian.PutUint32(huge[1:], 1<<32-1)
	short := frame(frameDone)
	binary.LittleEndian.PutUint32(short[1:], maxFrame)
	deep := done(1)
	for range maxDepth + 10 {
		deep = append(deep, kindSequence, 0, 3, 1)
	}
	return map[string][]byte{
		"nothing":                     {},
		"an unknown frame":            sealed(frame('x')),
		"a job":                       sealed(frame(frameJob)),
		"ready again":                 sealed(frame(frameReady)),
		"a frame of 4 GiB":            huge,
		"less than announced":         short,
		"a mapping without a value":   done(1, kindMapping, 0, 2, 1, kindScalar, 0, 1, 0),
		"an unknown kind":             done(1, 3, 0, 0, 0),
		"an unknown flag":             done(1, 64, 0, 0, 0),
		"an unknown tag":              done(1, kindScalar, 0, 99, 0),
		"a text longer than the rest": done(1, kindScalar, 0, 1, 200, 1),
		"more nodes than bytes":       done(1, kindSequence, 0, 3, 255, 255, 255, 127),
		"more objects than bytes":     done(255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
		"deeper than is allowed":      sealed(deep),
		"two answers":                 append(done(1, kindScalar, 0, 1, 1, 'a'), done(1, kindScalar, 0, 1, 1, 'b')...),
		"an answer and a question":    append(done(1, kindScalar, 0, 1, 1, 'a'), sealed(addText(frame(frameAsk), "x"))...),
		"a fault and more":            sealed(append(addText(append(frame(frameFault), 0, 0), "x"), 1)),
		"questions without end":       bytes.Repeat(sealed(addText(frame(frameAsk), "../../etc/passwd")), maxAsked+1),
		"more nodes than are allowed": done(append([]byte{1, kindSequence, 0, 3, 60}, bytes.Repeat([]byte{kindScalar, 0, 1, 0}, 60)...)...),
	}
}

// Any bytes from a worker are an answer or end the worker, in bounded memory.
func TestHostileWorkers(t *testing.T) {
	for name, sent := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			asked := 0
			w := &process{in: discard{io.Discard}, out: bufio.NewReader(bytes.NewReader(sent))}
			a := w.build(t.Context(), encodeJob(simple()), 50, func(string) Path { asked++; return Path{} })
			if !a.lost || a.nodes != nil {
				t.Errorf("%d objects, lost: %v, %v", len(a.nodes), a.lost, a.err)
			}
			if name != "nothing" && name != "less than announced" && !errors.Is(a.err, errWire) {
				t.Errorf("got %v", a.err)
			}
			if asked > maxAsked {
				t.Errorf("asked %d times", asked)
			}
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
				t.Errorf("took %d MiB", taken>>20)
			}
		})
	}
}

// FuzzAnswers decodes what is no answer.
func FuzzAnswers(f *testing.F) {
	for _, sent := range hostile() {
		if len(sent) > headerSize && len(sent) < 1<<16 {
			f.Add(sent[headerSize:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1000
		p := parser{rest: b}
		if nodes := p.objects(most); p.end() == nil && !fits(nodes, most) {
			t.Error("more than is allowed")
		}
		if j, err := decodeJob(b); err == nil {
			if _, err := decodeJob(encodeJob(j)[headerSize:]); err != nil {
				t.Error(err)
			}
		}
	})
}
