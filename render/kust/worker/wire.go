package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Kinds of frames, by their first byte.
const (
	frameReady  = 'R' // worker: the restrictions that it could not set
	frameJob    = 'J' // weir: a Job
	frameAsk    = '?' // worker: a path that the Job does not have
	framePath   = 'P' // weir: the Path
	frameDone   = 'D' // worker: the objects
	frameFault  = 'F' // worker: a Fault
	frameExcess = 'E' // worker: ErrNodes
)

// maxFrame bounds the bytes of a frame. It is enough for all files of a build, with the marks for origins, or
// for the objects.
const maxFrame = 64 << 20

var errWire = errors.New("the other side sent what it must not")

// writeFrame sends a frame. The frame starts with space for its header.
func writeFrame(w io.Writer, b []byte) error {
	if len(b)-headerSize > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes", errWire, len(b))
	}
	binary.LittleEndian.PutUint32(b[1:], uint32(len(b)-headerSize)) //nolint:gosec // It is at most maxFrame.
	_, err := w.Write(b)
	return err
}

const headerSize = 5

// frame returns the start of a frame.
func frame(kind byte) []byte { return append(make([]byte, 0, 256), kind, 0, 0, 0, 0) }

// readFrame reads a frame. It allocates memory as bytes arrive, regardless of the announced length.
func readFrame(r io.Reader) (kind byte, b []byte, err error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := int(binary.LittleEndian.Uint32(head[1:]))
	if length > maxFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errWire, length)
	}
	const step = 1 << 20
	for len(b) < length {
		from := len(b)
		b = append(b, make([]byte, min(step, length-from))...)
		if _, err := io.ReadFull(r, b[from:]); err != nil {
			return 0, nil, err
		}
	}
	return head[0], b, nil
}

func addText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parser parses the content of a frame. After invalid data, bad is true and all results are empty.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) number() uint64 {
	n, size := binary.Uvarint(p.rest)
	if p.bad || size <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[size:]
	return n
}

// count returns a number of items that take at least one byte each.
func (p *parser) count() int {
	n := p.number()
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return 0
	}
	return int(n) //nolint:gosec // It is at most maxFrame.
}

func (p *parser) bytes() []byte {
	n := p.count()
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) text() string { return string(p.bytes()) }

// end returns an error unless the frame was valid and was read completely.
func (p *parser) end() error {
	if p.bad || len(p.rest) > 0 {
		return errWire
	}
	return nil
}

// encodeJob returns the frame with a job for decodeJob in a worker.
func encodeJob(j *Job) []byte {
	size := 1 << 10
	for name, content := range j.Files {
		size += len(name) + len(content) + 8
	}
	b := append(make([]byte, 0, size+64*len(j.Paths)), frame(frameJob)...)
	b = addText(b, j.Root)
	b = append(b, 0)
	if j.Unsorted {
		b[len(b)-1] = 1
	}
	for _, n := range []int64{int64(j.Reads), j.Bytes, int64(j.Nodes), int64(len(j.Paths))} {
		b = binary.AppendUvarint(b, uint64(max(n, 0)))
	}
	for name, p := range j.Paths {
		b = addPath(addText(b, name), p)
	}
	b = binary.AppendUvarint(b, uint64(len(j.Files)))
	for name, content := range j.Files {
		b = addText(addText(b, name), content)
	}
	return b
}

// decodeJob decodes the content of a frame of encodeJob. Numbers are capped, and damaged data is an error.
func decodeJob(b []byte) (*Job, error) {
	p := parser{rest: b}
	const most = 1 << 40
	j := &Job{Root: p.text(), Unsorted: p.number() == 1, Paths: map[string]Path{}, Files: map[string][]byte{}}
	j.Reads, j.Bytes, j.Nodes = int(min(p.number(), most)), int64(min(p.number(), most)), int(min(p.number(), most)) //nolint:gosec // They are bounded.
	for range p.count() {
		name := p.text()
		j.Paths[name] = p.path()
	}
	for range p.count() {
		name := p.text()
		j.Files[name] = p.bytes()
	}
	return j, p.end()
}

func addPath(b []byte, p Path) []byte {
	flags := byte(0)
	if p.File {
		flags |= 1
	}
	if p.Missing {
		flags |= 2
	}
	return addText(addText(append(b, flags), p.At), p.Fault)
}

func (p *parser) path() Path {
	flags := p.number()
	return Path{File: flags&1 != 0, Missing: flags&2 != 0, At: p.text(), Fault: p.text()}
}

// tags lists the tags that are encoded as a number, which is their index.
var tags = []string{"", "!!str", "!!map", "!!seq", "!!int", "!!bool", "!!float", "!!null"}

var tagNumbers = func() map[string]uint64 {
	m := map[string]uint64{}
	for i, t := range tags {
		m[t] = uint64(i) //nolint:gosec // There are a few.
	}
	return m
}()

// encoder encodes nodes. It encodes aliases as their targets.
type encoder struct {
	b     []byte
	nodes int // the number of nodes that may still follow
}

// Bits of a node's first byte. The lowest bits are its kind.
const (
	kindScalar, kindMapping, kindSequence = 0, 1, 2

	kindBits  = 3
	bitTag    = 4 // a tag that is not in tags
	bitExtras = 8 // an anchor or comments
)

// add encodes a node. It returns false if there are too many nodes or they are nested too deeply.
func (e *encoder) add(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if e.nodes--; e.nodes < 0 || depth > maxDepth || len(e.b) > maxFrame {
		return false
	}
	var flags uint64
	switch n.Kind {
	case yaml.MappingNode:
		flags = kindMapping
	case yaml.SequenceNode:
		flags = kindSequence
	case yaml.ScalarNode:
		flags = kindScalar
	default:
		return false
	}
	tag, known := tagNumbers[n.Tag]
	if !known {
		flags |= bitTag
	}
	extras := n.Anchor != "" || n.HeadComment != "" || n.LineComment != "" || n.FootComment != ""
	if extras {
		flags |= bitExtras
	}
	e.b = binary.AppendUvarint(append(e.b, byte(flags)), uint64(n.Style))
	if known {
		e.b = binary.AppendUvarint(e.b, tag)
	} else {
		e.b = addText(e.b, n.Tag)
	}
	if extras {
		for _, s := range []string{n.Anchor, n.HeadComment, n.LineComment, n.FootComment} {
			e.b = addText(e.b, s)
		}
	}
	if n.Kind == yaml.ScalarNode {
		e.b = addText(e.b, n.Value)
		return true
	}
	e.b = binary.AppendUvarint(e.b, uint64(len(n.Content)))
	for _, c := range n.Content {
		if !e.add(c, depth+1) {
			return false
		}
	}
	return true
}

// node decodes a node. left is the number of nodes that may still follow.
func (p *parser) node(left *int, depth int) *yaml.Node {
	flags := p.number()
	if *left--; *left < 0 || depth > maxDepth || flags > kindBits|bitTag|bitExtras {
		p.bad, p.rest = true, nil
	}
	n := &yaml.Node{Style: yaml.Style(p.number() & 0xff)} //nolint:gosec // It is bounded.
	if flags&bitTag != 0 {
		n.Tag = p.text()
	} else if tag := p.number(); tag < uint64(len(tags)) {
		n.Tag = tags[tag]
	} else {
		p.bad, p.rest = true, nil
	}
	if flags&bitExtras != 0 {
		n.Anchor, n.HeadComment, n.LineComment, n.FootComment = p.text(), p.text(), p.text(), p.text()
	}
	switch flags & kindBits {
	case kindScalar:
		n.Kind, n.Value = yaml.ScalarNode, p.text()
		return n
	case kindMapping:
		n.Kind = yaml.MappingNode
	case kindSequence:
		n.Kind = yaml.SequenceNode
	default:
		p.bad, p.rest = true, nil
		return n
	}
	count := p.count()
	if n.Kind == yaml.MappingNode && count%2 != 0 || count > *left {
		p.bad, p.rest = true, nil
		return n
	}
	n.Content = make([]*yaml.Node, 0, count)
	for range count {
		if p.bad {
			break
		}
		n.Content = append(n.Content, p.node(left, depth+1))
	}
	return n
}

// objects decodes the objects in a frame.
func (p *parser) objects(most int) []*yaml.Node {
	nodes := make([]*yaml.Node, 0, min(p.count(), most))
	for len(p.rest) > 0 {
		nodes = append(nodes, p.node(&most, 0))
	}
	return nodes
}
