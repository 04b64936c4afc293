package artifact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzFileName(f *testing.F) {
	for _, s := range []string{"", "/", "/a/b", `a\b\`, "\xff/\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		name := FileName(p)
		require.False(t, strings.ContainsAny(name, separators))
		require.Contains(t, p, name)
		require.Equal(t, name, FileName(p+`/\`))
	})
}

func FuzzParseIntent(f *testing.F) {
	for _, s := range []string{"true", "0", " on\x00", "yes please", "\xff", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, ok := ParseIntent(raw)
		require.False(t, value && !ok)
		again, okAgain := ParseIntent(append([]byte{0}, raw...))
		if ok && len(raw) < maxIntentLen {
			require.Equal(t, []bool{value, ok}, []bool{again, okAgain})
		}
	})
}

func FuzzIgnore(f *testing.F) {
	for _, s := range []string{"*.log\n!a", "a/**/b", "[", "\\", "**", "!/", "a\x00b", strings.Repeat("*a", 40), "/**"} {
		f.Add(s, "/d/a.log")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		if len(text) > 4096 || len(path) > 4096 {
			return
		}
		rules, _ := parseIgnore(text)
		require.LessOrEqual(t, len(rules), maxIgnorePatterns)
		ignores(rules, path)
	})
}

func FuzzDecodeArtifact(f *testing.F) {
	for _, s := range []string{`{"path":"/a","fileName":"a","size":1}`, `{"path":"\\xff","fileName":"a","pathEscaped":true}`, `{`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := decodeMetadata(doc)
		if err != nil {
			return
		}
		out, err := json.Marshal(m)
		require.NoError(t, err)
		back, err := decodeMetadata(out)
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}

func FuzzSecret(f *testing.F) {
	for _, s := range []string{"", strings.Repeat("A", 43), strings.Repeat("A", 42) + "B", strings.Repeat("A", 44), "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if _, err := hashOf(secret); err != nil {
			return
		}
		raw, err := secretText.DecodeString(secret)
		require.NoError(t, err)
		require.Equal(t, secret, secretText.EncodeToString(raw), "one spelling only")
	})
}
