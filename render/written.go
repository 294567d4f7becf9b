package render

import (
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/pack"
)

// Stored is a render as it is written to disk. Its Reads decide whether it holds for a tree.
type Stored struct {
	Reads reads.Set
	set   intent.Set
	diags diag.List
}

// fields holds the packed fields of a Stored.
type fields struct {
	Set   intent.Set
	Diags diag.List
	Reads reads.Record
}

// Pack writes a render down for the next process of the same program, which Unpack reads. It
// gives nothing for one with an error, which is made again, and for one of manifests that hold a
// Secret, encrypted files, or variables that are marked as secret: no secret is written.
func (k *Kept) Pack() []byte {
	if !k.open || k.Diags.HasErrors() {
		return nil
	}
	return pack.Pack(nil, &fields{Set: k.Set, Diags: k.Diags, Reads: k.Reads.Record()})
}

// Unpack reads a render that was written down.
func Unpack(b []byte) (*Stored, error) {
	var f fields
	if err := pack.Unpack(b, &f); err != nil {
		return nil, err
	}
	return &Stored{Reads: f.Reads.Set(), set: f.Set, diags: f.Diags}, nil
}

// Keep is Result's.
func (w *Stored) Keep(s *Shared) (*Kept, error) {
	return keep(s, &Kept{Set: w.set, Diags: w.diags, Reads: w.Reads, open: true})
}
