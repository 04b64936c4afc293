package artifact_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

func TestFileName(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b.txt": "b.txt", `C:\a\b.txt`: "b.txt", `/a\b`: "b", `a\b/c`: "c", "b.txt": "b.txt",
		"/a/b/": "b", `/a/b\/\`: "b", "": "", "/": "", `\/\`: "", " ": " ", "/a/.": ".", "/\xff": "\xff",
	} {
		require.Equal(t, want, artifact.FileName(path), "%q", path)
	}
}

func TestFieldsAreValidated(t *testing.T) {
	good := artifact.Fields{Path: "/a", FileName: "a"}
	_, err := artifact.NewFileArtifact(good)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*artifact.Fields){
		"empty path":     func(f *artifact.Fields) { f.Path = "" },
		"blank path":     func(f *artifact.Fields) { f.Path = " \t" },
		"empty name":     func(f *artifact.Fields) { f.FileName = "" },
		"blank name":     func(f *artifact.Fields) { f.FileName = "\n" },
		"negative size":  func(f *artifact.Fields) { f.Size = -1 },
		"mime type":      func(f *artifact.Fields) { f.MimeType = "\xff" },
		"tool-use id":    func(f *artifact.Fields) { f.ToolUseID = "\xff" },
		"download token": func(f *artifact.Fields) { f.DownloadToken = "\xff" },
	} {
		f := good
		spoil(&f)
		_, err := artifact.NewFileArtifact(f)
		require.ErrorIs(t, err, session.ErrInvalid, name)
		_, err = artifact.NewMessageArtifact(f)
		require.ErrorIs(t, err, session.ErrInvalid, name)
	}
}

func TestWithDownloadTokenIsACopy(t *testing.T) {
	a, err := artifact.NewFileArtifact(artifact.Fields{Path: "/a", FileName: "a", Size: 3, MimeType: "m", ToolUseID: "t"})
	require.NoError(t, err)
	m := a.Message()
	with, err := m.WithDownloadToken("secret")
	require.NoError(t, err)
	require.Empty(t, m.DownloadToken())
	require.Equal(t, "secret", with.DownloadToken())
	require.Equal(t, int64(3), with.Size())
	without, err := with.WithDownloadToken("")
	require.NoError(t, err)
	require.Equal(t, m, without)
}

func TestCodec(t *testing.T) {
	for _, c := range []struct {
		fields artifact.Fields
		json   string
	}{
		{artifact.Fields{Path: "/d/a.txt", FileName: "a.txt", Size: 7, MimeType: "text/plain", ToolUseID: "t", DownloadToken: "s"},
			`{"path":"/d/a.txt","fileName":"a.txt","size":7,"mimeType":"text/plain","toolUseId":"t","downloadToken":"s"}`},
		{artifact.Fields{Path: `/a\b`, FileName: "b"}, `{"path":"/a\\b","fileName":"b","size":0}`},
		{artifact.Fields{Path: "/\xe9\\x", FileName: "x"}, `{"path":"/\\xe9\\\\x","fileName":"x","pathEscaped":true,"size":0}`},
	} {
		m, err := artifact.NewMessageArtifact(c.fields)
		require.NoError(t, err)
		doc, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, c.json, string(doc))
		var back artifact.MessageArtifact
		require.NoError(t, json.Unmarshal(doc, &back))
		require.Equal(t, m, back)
		var file artifact.FileArtifact
		require.NoError(t, json.Unmarshal(doc, &file))
		require.Equal(t, m, file.Message())
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, doc := range []string{
		`{}`, `[]`, `null`, `{"path":"/a","size":1}`, `{"path":"/a","fileName":"a","size":-1}`,
		`{"path":"/a","fileName":"a","size":"1"}`, `{"path":"\\q","fileName":"a","pathEscaped":true,"size":1}`,
	} {
		var a artifact.FileArtifact
		require.ErrorIs(t, json.Unmarshal([]byte(doc), &a), session.ErrInvalid, doc)
	}
	var a artifact.FileArtifact
	require.NoError(t, json.Unmarshal([]byte(`{"path":"/a","fileName":"a","size":1,"later":{}}`), &a), "unknown fields are ignored")
}

func TestShownNames(t *testing.T) {
	shown, name, escaped := artifact.ShownNames("/d\xff/a.txt")
	require.Equal(t, []any{`/d\xff/a.txt`, "a.txt", true}, []any{shown, name, escaped})
	shown, name, escaped = artifact.ShownNames("/d/ü")
	require.Equal(t, []any{"/d/ü", "ü", false}, []any{shown, name, escaped})
}
