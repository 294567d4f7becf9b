package render

import (
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/pack"
)

// Stored is a render as it is written to disk. Its Reads decide if it is valid for a tree.
type Stored struct {
	Reads reads.Set
	set   intent.Set
	diags diag.List
}

// fields are the packed fields of a Stored.
type fields struct {
	Set   intent.Set
	Diags diag.List
	Reads reads.Record
}

// Pack encodes a render for a later process of the same program, which reads it with Unpack. It returns nil
// for a render with an error, which must be repeated. It also returns nil if the manifests have a Secret,
// encrypted files or secret variables, so that no secret is written to disk.
func (k *Kept) Pack() []byte {
	if !k.open || k.Diags.HasErrors() {
		return nil
	}
	return pack.Pack(nil, &fields{Set: k.Set, Diags: k.Diags, Reads: k.Reads.Record()})
}

// Unpack decodes a render that Pack encoded.
func Unpack(b []byte) (*Stored, error) {
	var f fields
	if err := pack.Unpack(b, &f); err != nil {
		return nil, err
	}
	return &Stored{Reads: f.Reads.Set(), set: f.Set, diags: f.Diags}, nil
}

// Keep is like Result.Keep.
func (w *Stored) Keep(s *Shared) (*Kept, error) {
	return sharedCopy(s, &Kept{Set: w.set, Diags: w.diags, Reads: w.Reads, open: true})
}
