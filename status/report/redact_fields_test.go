package report_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
)

// No field of a report that is named as a free text is shown as it is, and the report stays.
func TestEveryFreeTextIsRedacted(t *testing.T) {
	var r plan.Report
	fillTexts(reflect.ValueOf(&r).Elem(), 0)
	before := texts(reflect.ValueOf(&r).Elem())
	shown := texts(reflect.ValueOf(report.Redact(func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }).Report(&r)).Elem())
	free := regexp.MustCompile(`(Changes.Field|Summary|Detail|Message|Hint|Why|Reason|Unknown|Fault|Failed|Held|Cause|Subject|Words|From|To|HeldEnds)$`)
	codes := []string{ // of weir's own or of an API
		".Pools.Conditions.Reason", ".LaunchConfigs.Conditions.Reason", ".Pools.FailureReason", ".Pools.FailureCause", ".Governed.Facts.NodesFrom", ".Pools.ReadyFrom", ".Plan.Steps.Held", ".Outcomes.Step.Held",
	}
	for at := range before {
		if strings.Contains(at, ".Wanted.") { // it is shown nowhere
			continue
		}
		if free.MatchString(at) && shown[at] && !slices.Contains(codes, at) {
			t.Errorf("%s is not redacted", at)
		}
	}
	if after := texts(reflect.ValueOf(&r).Elem()); !reflect.DeepEqual(after, before) {
		t.Error("the report itself was changed")
	}
}

// fillTexts gives a value texts in all fields, lists of one element and no nil pointers.
func fillTexts(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("hunter2")
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fillTexts(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillTexts(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fillTexts(v.Index(0), depth+1)
		}
	}
}

// texts are the paths of fields with the text.
func texts(v reflect.Value) map[string]bool {
	out := map[string]bool{}
	var look func(at string, v reflect.Value)
	look = func(at string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if strings.Contains(v.String(), "hunter2") {
				out[at] = true
			}
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				look(at, v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				look(at+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				look(at, v.Index(i))
			}
		}
	}
	look("", v)
	return out
}
