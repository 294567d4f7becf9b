package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

// GitHub prints findings as workflow commands, which GitHub Actions shows next to the lines of a
// change. Files are relative to the repository's root.
func GitHub(w io.Writer, findings []diag.Finding) error {
	for _, f := range findings {
		command := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "notice"}[f.Severity]
		at := locationOf(f)
		var params []string
		add := func(name, value string) { params = append(params, name+"="+parameter.Replace(wording.Clean(value))) }
		if at.Known() {
			add("file", at.File)
		}
		if at.Line > 0 {
			add("line", strconv.Itoa(at.Line))
		}
		if at.Column > 0 {
			add("col", strconv.Itoa(at.Column))
		}
		add("title", "weir: "+f.Code)
		text := message(f.Diagnostic)
		for _, r := range f.Related {
			text += "\n" + CleanText(strings.TrimPrefix(r.String()+": ", ": ")+r.Message)
		}
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", command, strings.Join(params, ","), data.Replace(text)); err != nil {
			return fmt.Errorf("print workflow commands: %w", err)
		}
	}
	return nil
}

// The runner decodes these escapes; in parameters, it also decodes a colon and a comma. Other invisible
// characters are already escaped.
var (
	data      = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	parameter = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
