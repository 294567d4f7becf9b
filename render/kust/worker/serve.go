package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/gctuning"
)

// Name is the argument by which this program is a worker.
const Name = "build-worker"

// Asked reports whether this process was started as a worker, so that it has to call
// Serve before it does anything else.
func Asked() bool { return len(os.Args) == 4 && os.Args[1] == Name }

// garbage is the divisor that gives the part of its memory that a worker may fill with garbage: 24
// MiB of 216. Limits that hold at Go's own pace, which needs twice the live memory, also hold with
// it: of a small worker's memory 56 MiB are left for its heap before Go asks for 64 MiB more.
const garbage = 9

// idle is the time without a job after which a worker gives back its free memory.
const idle = time.Second

// Serve runs a worker: it confines itself, builds the jobs that it receives, and ends when its
// input does.
func Serve() int {
	// weir itself acts on signals that a terminal or a service manager sends to all
	// processes.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	memory, err := strconv.ParseInt(os.Args[2], 10, 64)
	seconds, err2 := strconv.ParseInt(os.Args[3], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		return 1
	}
	limits := Limits{Memory: memory, CPU: time.Duration(seconds) * time.Second}
	// The collector works hard before the system refuses more, because the system's
	// limit includes all that Go has mapped in steps of 64 MiB, used or not.
	debug.SetMemoryLimit(limits.Memory * 3 / 4)
	_ = os.Unsetenv("GOGC")                // start's
	gctuning.Set(uint64(memory) / garbage) //nolint:gosec // A limit is no negative number.
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), 2))
	lacks := confine(limits)
	limitCopies()
	ready := frame(frameReady)
	for _, l := range lacks {
		ready = addText(ready, l)
	}
	if writeFrame(os.Stdout, ready) != nil {
		return 1
	}
	return serve(os.Stdin, os.Stdout)
}

type received struct {
	kind byte
	b    []byte
}

func serve(in io.Reader, out io.Writer) int {
	frames := make(chan received)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			kind, b, err := readFrame(r)
			if err != nil {
				os.Exit(0) // weir has ended; any work here is obsolete
			}
			frames <- received{kind, b}
		}
	}()
	idling := time.NewTimer(idle)
	for {
		select {
		case <-idling.C:
			debug.FreeOSMemory()
			continue
		case f := <-frames:
			if f.kind != frameJob {
				return 1
			}
			if writeFrame(out, runJob(f.b, frames, out)) != nil {
				return 1
			}
		}
		idling.Reset(idle)
	}
}

// runJob builds a job and returns the frame to answer with.
func runJob(b []byte, frames <-chan received, out io.Writer) []byte {
	j, err := decodeJob(b)
	if err != nil {
		return addText(final(frameFault), err.Error())
	}
	nodes, err := kustomize(j, func(path string) Path {
		if writeFrame(out, addText(frame(frameAsk), path)) != nil {
			os.Exit(1)
		}
		f := <-frames
		p := parser{rest: f.b}
		to := p.path()
		if f.kind != framePath || p.end() != nil {
			os.Exit(1)
		}
		return to
	})
	if err != nil {
		const longest = 1 << 20
		text := err.Error()
		return addText(final(frameFault), text[:min(len(text), longest)])
	}
	e := encoder{b: binary.AppendUvarint(final(frameDone), uint64(len(nodes))), nodes: j.Nodes}
	if !e.all(nodes) {
		return final(frameExcess)
	}
	return e.b
}

// final begins a frame that answers a job: with what this process has taken so far.
func final(kind byte) []byte {
	b := binary.AppendUvarint(frame(kind), uint64(usedCPU())) //nolint:gosec // Time does not run backwards.
	return binary.AppendUvarint(b, taken())
}

func (e *encoder) all(nodes []*yaml.Node) bool {
	for _, n := range nodes {
		if !e.add(n, 0) {
			return false
		}
	}
	return len(e.b)-headerSize <= maxFrame
}

// taken is the memory that this process has of the system.
func taken() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m) // some microseconds; it stops the world, which is alone here
	return m.Sys - m.HeapReleased
}
