package scan

import (
	"errors"

	"github.com/makiuchi-d/gozxing"
	multi "github.com/makiuchi-d/gozxing/multi/qrcode/detector"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/detector"
)

const (
	// minSymbol is the side of the smallest symbol, version 1, in modules (ISO/IEC
	// 18004): a smaller picture cannot show one.
	minSymbol = 21

	// maxFinders bounds the finder patterns that a look takes up. Their triples grow
	// with the third power: a wallpaper of finder patterns before the camera must
	// cost no more than a crowd of phones. 96 are 32 codes.
	maxFinders = 96

	// maxTriples bounds how many triples of finder patterns are sampled and decoded.
	maxTriples = 96
)

// errCrowded ends a look at more finder patterns than maxFinders.
var errCrowded = errors.New("too many finder patterns")

// look finds the texts in a frame, dark on light first, then light on dark.
func (r *Reader) look(f Frame) ([]string, error) {
	texts, err := binarise(newGrey(f, &r.packed))
	if err != nil || len(texts) > 0 || r.opts.LightOnly {
		return texts, err
	}
	// Turning the binary picture round would be cheaper and reads fewer: gozxing's
	// thresholds take a ground without contrast for white, and a dark screen has none.
	return binarise(newGrey(r.inverse(f), &r.packed))
}

// binarise reads one picture of dark codes.
func binarise(src *grey) ([]string, error) {
	bits, err := gozxing.NewHybridBinarizer(src).GetBlackMatrix()
	if err != nil {
		if _, flat := err.(gozxing.NotFoundException); flat {
			return nil, nil
		}
		return nil, err
	}
	return read(bits), nil
}

// inverse is the negative of a frame, in the reader's own buffer.
func (r *Reader) inverse(f Frame) Frame {
	neg := Frame{Stride: f.W, W: f.W, H: f.H, Pix: grow(&r.packed, f.W*f.H)}
	for y := range f.H {
		out := neg.Pix[y*neg.Stride:][:f.W]
		for x, v := range f.Pix[y*f.Stride:][:f.W] {
			out[x] = 255 - v
		}
	}
	return neg
}

// read decodes what the triples of finder patterns in a binary picture frame.
func read(bits *gozxing.BitMatrix) (texts []string) {
	finder, triples := find(bits)
	texts = decodeAll(bits, triples)
	if len(texts) > 0 || finder == nil {
		return texts
	}
	// The multi finder wants right angles. The best three patterns may still be a
	// code that is seen aslant.
	best, notFound := finder.SelectBestPatterns()
	if notFound != nil {
		return nil
	}
	return decodeAll(bits, []*detector.FinderPatternInfo{triple(best)})
}

// find looks for finder patterns and for triples of them that may be codes. The
// finder is nil where there were too many.
func find(bits *gozxing.BitMatrix) (finder *multi.MultiFinderPatternFinder, triples []*detector.FinderPatternInfo) {
	n := 0
	finder = multi.NewMultiFinderPatternFinder(bits, func(gozxing.ResultPoint) {
		if n++; n > maxFinders {
			panic(errCrowded) // the only way out of gozxing's search
		}
	})
	defer func() {
		if p := recover(); p == errCrowded {
			finder, triples = nil, nil
		} else if p != nil {
			panic(p)
		}
	}()
	triples, _ = finder.FindMulti(hints())
	return finder, triples
}

func triple(p []*detector.FinderPattern) *detector.FinderPatternInfo {
	bl, tl, tr := gozxing.ResultPoint_OrderBestPatterns(p[0], p[1], p[2])
	return detector.NewFinderPatternInfo(
		bl.(*detector.FinderPattern), tl.(*detector.FinderPattern), tr.(*detector.FinderPattern))
}

// decodeAll returns the different texts that the triples give.
func decodeAll(bits *gozxing.BitMatrix, triples []*detector.FinderPatternInfo) (texts []string) {
	seen := map[string]bool{}
	sampler, dec := detector.NewDetector(bits), decoder.NewDecoder()
	for _, t := range triples[:min(len(triples), maxTriples)] {
		text, ok := decode(sampler, dec, t)
		if ok && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}

// decode samples and decodes one symbol. A panic on the way is that symbol's
// alone: the others in the frame are still read.
func decode(sampler *detector.Detector, dec *decoder.Decoder, t *detector.FinderPatternInfo) (text string, ok bool) {
	err := contain(func() error {
		sampled, err := sampler.ProcessFinderPatternInfo(t)
		if err != nil {
			return err
		}
		res, err := dec.Decode(sampled.GetBits(), hints())
		if err != nil {
			return err
		}
		text, ok = plain(res)
		return nil
	})
	return text, ok && err == nil
}

// hints are gozxing's settings. It otherwise guesses how bytes are to be read;
// with ISO 8859-1 each byte becomes the rune of its number, which plain undoes.
func hints() map[gozxing.DecodeHintType]any {
	return map[gozxing.DecodeHintType]any{
		gozxing.DecodeHintType_TRY_HARDER:    true,
		gozxing.DecodeHintType_CHARACTER_SET: "ISO8859_1",
	}
}
