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

// Name is the command line argument that makes this program a worker.
const Name = "build-worker"

// Asked reports whether this process was started as a worker. The program must then call Serve before
// anything else.
func Asked() bool { return len(os.Args) == 4 && os.Args[1] == Name }

// garbage divides a worker's memory limit; the result is the memory that may be garbage: 24 MiB of 216.
// Limits that are sufficient with Go's default, which needs twice the live memory, are also sufficient with
// this. A small worker has 56 MiB for its heap before Go requests another 64 MiB.
const garbage = 9

// idle is the time without a job after which a worker releases free memory.
const idle = time.Second

// Serve runs a worker. It confines itself, builds the jobs that it receives, and ends when its input ends.
func Serve() int {
	// Terminals and service managers send these signals to all processes. The main process handles them.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	memory, err := strconv.ParseInt(os.Args[2], 10, 64)
	seconds, err2 := strconv.ParseInt(os.Args[3], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		return 1
	}
	limits := Limits{Memory: memory, CPU: time.Duration(seconds) * time.Second}
	// The collector must work hard before the system refuses memory. The system's limit includes all memory
	// that Go has mapped, in steps of 64 MiB.
	debug.SetMemoryLimit(limits.Memory * 3 / 4)
	_ = os.Unsetenv("GOGC")                // it is only for the start
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

// serve is the loop of a worker process: it runs one job after the other, and returns the exit code 1 after
// a wrong frame or a failed write. The process exits with 0 when the daemon closes the input. An idle
// worker returns its free memory to the system.
func serve(in io.Reader, out io.Writer) int {
	frames := make(chan received)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			kind, b, err := readFrame(r)
			if err != nil {
				os.Exit(0) // weir has ended, so this work is obsolete
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

// runJob builds a job and returns the frame with the answer.
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

// final starts a frame that answers a job, with the CPU time and memory of this process.
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

// taken returns the memory that this process has from the system.
func taken() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m) // takes some microseconds; it stops the world, but nothing else runs here
	return m.Sys - m.HeapReleased
}
