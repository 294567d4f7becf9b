package forecast

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
)

var update = flag.Bool("update", false, "write the goldens")

// example is a change of three pools in two waves, behind a window and an approval.
func example() *timeline.Timeline {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r := timeline.New(noon)
	r.Target("prod", "123456789012", "eu-west-1")
	r.Target("late", "123456789012", "eu-central-1")
	after := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	ids := 0
	for pool := range 3 {
		name, from := fmt.Sprintf("default/web-%d", pool), []int{30, 75, 75}[pool]
		size := int32(10 + 10*pool)
		step := size / 5
		see := func(minute int, old, is, starting, ending int32, moves bool) {
			s := timeline.Seen{Name: name, Desired: size, Versions: map[string]int32{}, Starting: starting, Ending: ending, Moves: moves, Converged: !moves}
			for v, n := range map[string]int32{"3": old, "4": is} {
				if n > 0 {
					s.Versions[v] = n
				}
			}
			for range starting {
				ids++
				s.Machines = append(s.Machines, fmt.Sprint("i-", ids))
			}
			r.Saw(after(minute), "prod", []timeline.Seen{s}, false)
		}
		see(0, size, 0, 0, 0, false)
		if from == 30 || pool == 1 {
			r.Wave(after(from), "default/all: "+map[int]string{30: "wave 1 of 2", 75: "wave 2 of 2"}[from])
		}
		for n := int32(0); n < size; n += step {
			see(from+int(6*n/step), size-n, n, step, 0, true)
			see(from+int(6*n/step)+4, size-n-step, n+step, 0, step, true)
		}
		see(from+32, 0, size, 0, 0, false)
	}
	r.Holds(noon, "prod", []timeline.Held{{Hold: "window", Why: "the next window opens on Mon 2 Mar 12:30 UTC", Pools: 3}})
	r.Holds(after(30), "prod", nil)
	r.Holds(noon, "late", []timeline.Held{{Hold: "approval", Why: "weir approve 0123 <script>", Pools: 2, Person: true}})
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "autoscaling:all", Times: 230, Left: 71})
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "autoscaling:all", Write: true, Times: 3, Left: 70})
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "ec2:CreateLaunchTemplateVersion", Write: true, Times: 3, Left: 97})
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "ec2:DescribeLaunchTemplates", Throttled: true, Times: 1, Left: 0})
	r.Waited(12 * time.Second)
	t := r.Finish("")
	t.Assumptions = []timeline.Assumption{{What: "a machine is in service after its launch within", Value: "3m0s", Flag: "--machine-ready"}, {What: "nobody else calls AWS"}}
	t.Doubts = []string{"the copy of target prod differs from AWS: its plan lacks default/\x1b[31mx: update nodegroup"}
	return t
}

func TestGoldens(t *testing.T) {
	e := example()
	var text, data bytes.Buffer
	if err := Text(&text, e); err != nil {
		t.Fatal(err)
	}
	enc := json.NewEncoder(&data)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		t.Fatal(err)
	}
	sure := *e // what the documentation shows
	sure.Doubts, sure.Waiting = nil, e.Waiting[:1]
	sure.Outcome = timeline.Converged
	for name, got := range map[string]string{"text.txt": text.String(), "timeline.json": data.String(), "fold.md": Fold(e), "picture.svg": SVG(e), "../../../deploy/docs/images/over-time.svg": SVG(&sure)} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if strings.ContainsRune(text.String()+Fold(e)+SVG(e), '\x1b') {
		t.Error("a character that a terminal heeds is shown")
	}
	if strings.Contains(Fold(e)+SVG(e), "<script>") {
		t.Error("what others wrote is markup")
	}
}

// The picture is XML, whatever the timeline holds.
func TestThePictureIsWellFormed(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	empty := timeline.New(noon)
	empty.Target("prod", "", "eu-west-1")
	many := timeline.New(noon)
	many.Target("a<b", "", "eu-west-1")
	for i := range 500 {
		many.Wave(noon.Add(time.Duration(i)*time.Hour), "wave <&>")
		many.Saw(noon.Add(time.Duration(i)*time.Hour), "a<b", []timeline.Seen{{Name: "x/y", Desired: int32(i), Versions: map[string]int32{"1": int32(2 * i)}, Moves: true}}, false)
	}
	for name, e := range map[string]*timeline.Timeline{"example": example(), "empty": empty.Finish(""), "many": many.Finish("it was <cut> short")} {
		text := SVG(e)
		if len(text) > 100_000 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		for dec := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}
