package schema_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// readAWS reads the lines "Kind field  text" and "Type field  text".
func readAWS(name string) (map[string]string, error) {
	content, err := os.ReadFile(name) //nolint:gosec // testdata
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, text, found := strings.Cut(line, "  ")
		if !found {
			// One space before the text is enough where the field is long.
			at := strings.LastIndex(line[:strings.IndexByte(line, ' ')+1], " ")
			kind, rest := line[:at], line[at+1:]
			field, after, _ := strings.Cut(rest, " ")
			id, text = kind+" "+field, after
		}
		id = strings.TrimSpace(id)
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("%s: %q is there twice", name, id)
		}
		out[id] = strings.TrimSpace(text)
	}
	return out, nil
}

// inAWS is what the longest line that fits says of a field.
func (r *referencePage) inAWS(path string, in []string) string {
	try := func(kind, field string) (string, bool) {
		parts := strings.Split(field, ".")
		for n := len(parts); n >= 0; n-- {
			id := kind
			if n > 0 {
				id += " " + strings.Join(parts[:n], ".")
			}
			text, ok := r.aws[id]
			if !ok {
				id = strings.TrimSuffix(id, "[]")
				text, ok = r.aws[id]
			}
			if ok {
				r.used[id] = true
				return withRest(text, parts[n:]), true
			}
		}
		return "", false
	}
	if in != nil {
		if rest, ok := strings.CutPrefix(path, in[1]+"."); ok {
			if id := in[0] + " " + rest; r.aws[id] == "" {
				if text := inTable(field.Template, "awsLaunchTemplate."+rest); text != "" {
					return text
				}
			}
			if text, ok := try(in[0], rest); ok {
				return text
			}
		}
	}
	of := map[string]field.Kind{"AWSMachinePool": field.Group, "AWSManagedMachinePool": field.Nodegroup}[r.kind]
	if rest, ok := strings.CutPrefix(path, "spec."); ok && r.aws[r.kind+" "+path] == "" {
		if text := inTable(of, rest); text != "" {
			return text
		}
	}
	text, _ := try(r.kind, path)
	for _, of := range []field.Kind{field.Template, field.Group, field.Nodegroup} {
		for _, row := range field.Rows(of) {
			if r.kind == "PoolOptions" && !row.OfPool() && "spec."+row.OptionsField() == path && row.Doc != "" {
				text += ", " + row.Doc
			}
		}
	}
	return text
}

// inTable is what rows of package field say of a field below spec of the pool. The root
// volume's are those of any volume.
func inTable(of field.Kind, path string) string {
	set := setBy(of, strings.Replace(path, ".rootVolume", ".nonRootVolumes[]", 1))
	if len(set) == 0 {
		return ""
	}
	api := map[field.Kind]string{field.Template: "EC2", field.Group: "Auto Scaling", field.Nodegroup: "EKS"}[of]
	var names []string
	var doc string
	own := set[0].PoolFields()[0]
	for _, r := range set {
		name := strings.ReplaceAll(r.AWS, "[]", "")
		if of == field.Nodegroup { // EKS spells its members so
			parts := strings.Split(name, ".")
			for i, p := range parts {
				parts[i] = field.Key(p)
			}
			name = strings.Join(parts, ".")
		}
		names = append(names, name)
		if doc = ""; r.Doc != "" {
			doc = ", " + r.Doc
		}
		if r.PoolFields()[0] != own { // it holds the members
			return api + " `" + strings.Split(names[0], ".")[0] + "`"
		}
	}
	return api + " `" + strings.Join(names, "` or `") + "`" + doc
}

// withRest puts the rest of a field's name into the place of a plus at the end,
// as AWS's query APIs spell it, or of an equals sign, as EKS does.
func withRest(text string, rest []string) string {
	sign := text[len(text)-1:]
	if sign != "+" && sign != "=" {
		return text
	}
	text = strings.TrimSuffix(text[:len(text)-1], "`")
	if len(rest) == 0 {
		return strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(text, "."), "`"), " ") + map[bool]string{true: "`"}[strings.Count(strings.TrimSuffix(strings.TrimSuffix(text, "."), "`"), "`")%2 == 1]
	}
	for i, p := range rest {
		if sign == "+" {
			p = strings.ToUpper(p[:1]) + p[1:]
		}
		rest[i] = p
	}
	return strings.TrimSuffix(text, ".") + map[bool]string{true: "."}[!strings.HasSuffix(text, "`.")] + strings.Join(rest, ".") + "`"
}

// takes says what a field may hold, in a few words.
func takes(s *kinds.Schema) string {
	var out []string
	switch {
	case s.Type == "array" && s.Items != nil:
		out = append(out, "list of "+plural(s.Items))
	case s.Type == "object" && len(s.Properties) == 0:
		out = append(out, "mapping")
	case s.Type == "":
		out = append(out, "anything")
	case s.Format != "":
		out = append(out, "duration, such as `5m0s`")
	case s.Type == "integer":
		out = append(out, "number")
	case s.Type == "string" && len(s.Enum) == 0:
		out = append(out, "text")
	case s.Type == "object":
		out = append(out, "object")
	case s.Type == "boolean":
		out = append(out, "`true` or `false`")
	}
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = "`" + v + "`"
			if v == "" {
				values[i] = "nothing"
			}
		}
		out = append(out, strings.Join(values, ", "))
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		out = append(out, fmt.Sprintf("%d to %d", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		out = append(out, fmt.Sprintf("%d or more", *s.Minimum))
	case s.Maximum != nil:
		out = append(out, fmt.Sprintf("up to %d", *s.Maximum))
	}
	if s.MaxItems > 0 {
		out = append(out, "up to "+strconv.FormatInt(s.MaxItems, 10)+" of them")
	}
	if s.Default != nil {
		out = append(out, fmt.Sprintf("default `%v`", s.Default))
	}
	return strings.ReplaceAll(strings.Join(out, "; "), "|", `\|`)
}
