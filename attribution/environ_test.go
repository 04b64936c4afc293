package attribution

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestParseEnviron(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, block string
		cut         bool
		want        words
	}{
		{"nothing", "", false, words{}},
		{"all", "A=b\x00VFSD_TOOL_USE_ID=T1\x00VFSD_EXECUTION_ID=e\x00VFSD_ARTIFACT=Yes\x00", false, words{toolUse: "T1", said: true, execution: "e", artifact: &yes}},
		{"first counts", "VFSD_TOOL_USE_ID=1\x00VFSD_TOOL_USE_ID=2\x00VFSD_ARTIFACT=off\x00VFSD_ARTIFACT=on\x00", false, words{toolUse: "1", said: true, artifact: &no}},
		{"an invalid first counts too", "VFSD_TOOL_USE_ID=\x00VFSD_TOOL_USE_ID=2\x00", false, words{said: true, invalid: true}},
		{"value with equals signs", "VFSD_TOOL_USE_ID=a=b=\x00", false, words{toolUse: "a=b=", said: true}},
		{"no equals sign", "VFSD_TOOL_USE_ID\x00", false, words{}},
		{"other names", "XVFSD_TOOL_USE_ID=a\x00VFSD_TOOL_USE_IDX=a\x00vfsd_tool_use_id=a\x00", false, words{}},
		{"last without its zero", "VFSD_TOOL_USE_ID=a", false, words{toolUse: "a", said: true}},
		{"last was cut", "VFSD_ARTIFACT=1\x00VFSD_TOOL_USE_ID=a", true, words{artifact: &yes}},
		{"execution that is no id", "VFSD_EXECUTION_ID=../x\x00", false, words{}},
		{"only zeros", "\x00\x00\x00", false, words{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, parseEnviron([]byte(c.block), c.cut))
		})
	}
}

func TestParseIntent(t *testing.T) {
	for in, want := range map[string]any{
		"1": true, "true": true, "YES": true, "On": true, "0": false, "False": false, "no": false, "OFF": false,
		"": nil, "2": nil, " true": nil, "y": nil,
	} {
		got := parseIntent(in)
		if want == nil {
			require.Nil(t, got, in)
			continue
		}
		require.Equal(t, want, *got, in)
	}
}

func FuzzParseEnviron(f *testing.F) {
	f.Add([]byte("A=b\x00VFSD_TOOL_USE_ID=T1\x00VFSD_EXECUTION_ID=e\x00VFSD_ARTIFACT=yes\x00"), false)
	f.Add([]byte("VFSD_TOOL_USE_ID=\xff\x00VFSD_TOOL_USE_ID=2"), true)
	f.Add([]byte(strings.Repeat("VFSD_=\x00", 100)), false)
	f.Fuzz(func(t *testing.T, b []byte, cut bool) {
		w := parseEnviron(b, cut)
		if w.said && !w.invalid {
			require.NoError(t, session.CheckToolUseID(w.toolUse))
			require.True(t, bytes.Contains(b, []byte(envToolUse+"="+w.toolUse)))
		}
		if w.execution != "" {
			require.NoError(t, session.CheckID("execution", w.execution))
		}
	})
}
