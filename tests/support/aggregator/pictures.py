"""Create README's pictures from `build/pictures`, cropped and with few colours.

`make pictures` first runs the tests that save them there.
"""

from PIL import Image

from tests.support.paths import REPOSITORY

ROOT = REPOSITORY
COLOURS = 128
# Name in docs: picture of a test, its height kept in pixels (None: all), width in docs.
PICTURES: dict[str, tuple[str, int | None, int]] = {
    "page": ("desk-light", 1472, 1000),
    "page-phone": ("phone-dark", 1250, 360),
    "page-so-far": ("so-far-desk", 1664, 1000),
    "page-number": ("number-desk-light", 1040, 1000),
    "page-pair": ("pair-desk", 1730, 1000),
    "page-texts": ("asked-twice", 1150, 1000),
    "terminal": ("terminal", None, 920),
}


def main() -> None:
    """Create all pictures."""
    for name, (source, height, width) in PICTURES.items():
        with Image.open(ROOT / "build" / "pictures" / f"{source}.png") as picture:
            cut = picture.convert("RGB").crop((0, 0, picture.width, height or picture.height))
        small = cut.resize((width, round(cut.height * width / cut.width)), Image.Resampling.LANCZOS)
        few = small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(ROOT / "docs" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
