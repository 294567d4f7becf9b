package model

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Strip returns a JSON value without the zero values in its objects. something reports whether
// anything is left.
func Strip(v any) (out any, something bool) {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for k, child := range v {
			if c, some := Strip(child); some {
				kept[k] = c
			}
		}
		return kept, len(kept) > 0
	case []any:
		kept := make([]any, 0, len(v))
		for _, child := range v {
			c, _ := Strip(child)
			kept = append(kept, c)
		}
		return kept, len(kept) > 0
	case bool:
		return v, v
	case string:
		return v, v != ""
	case float64:
		return v, v != 0
	}
	return v, v != nil
}

// UserDataField is the field of a change of user data as a whole. Changes of its parts have fields
// below it.
const UserDataField = "userData"

const (
	// wordsChanges is the number of changes that a reason names. The plan lists them all.
	wordsChanges = 4
	// wordsValue is the number of characters of a value that a reason shows.
	wordsValue = 40
)

// ChangeWords describes in one line which fields change, and from which to which value. For user
// data it names the parts.
func ChangeWords(changes []step.Change) string {
	var out, parts []string
	left, userData := 0, false
	for _, ch := range changes {
		switch part, below := strings.CutPrefix(ch.Field, UserDataField+"."); {
		case below:
			parts = append(parts, part)
		case ch.Field == UserDataField:
			userData = true
		case len(out) == wordsChanges:
			left++
		default:
			out = append(out, strings.TrimPrefix(ch.Field, "awsLaunchTemplate.")+" "+transitionWords(ch))
		}
	}
	if left > 0 {
		out = append(out, strconv.Itoa(left)+" more")
	}
	switch {
	case len(parts) > wordsChanges:
		out = append(out, UserDataField+" ("+strings.Join(parts[:wordsChanges], ", ")+" and "+strconv.Itoa(len(parts)-wordsChanges)+" more)")
	case len(parts) > 0:
		out = append(out, UserDataField+" ("+strings.Join(parts, ", ")+")")
	case userData:
		out = append(out, UserDataField)
	}
	return strings.Join(out, "; ")
}

// transitionWords returns the old and the new value. It omits them if an ARN would be truncated,
// because a truncated ARN can look like another one.
func transitionWords(ch step.Change) string {
	from, to := ValueWords(ch.From), ValueWords(ch.To)
	for _, words := range []string{from, to} {
		if strings.Contains(words, "arn:") && strings.HasSuffix(words, "…") {
			return "changes"
		}
	}
	return from + " → " + to
}

// ValueWords returns a value as text for people: "(none)" for nil, JSON for other types than texts,
// cut to a maximum length.
func ValueWords(v any) string {
	text, isText := v.(string)
	switch {
	case v == nil:
		return "(none)"
	case !isText:
		b, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		text = string(b)
	}
	text = content.Printable(text)
	if r := []rune(text); len(r) > wordsValue {
		return string(r[:wordsValue-1]) + "…"
	}
	return text
}
