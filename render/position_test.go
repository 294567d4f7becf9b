package render_test

import "github.com/weir-gitops/weir/render/diag"

// asItIs leaves a position as the tree has it.
func asItIs(p diag.Position) diag.Position { return p }
